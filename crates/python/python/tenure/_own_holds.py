"""What each thread and each asyncio task holds: a wait for that without a limit would never end."""

from __future__ import annotations

import asyncio
import threading
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Protocol, Tuple

from . import _native, _request
from ._held import Held


class Owner(Protocol):
    """Something that holds until it is given back, or until nothing knows it any more."""

    def _kept(self) -> Optional[_native.Kept]:
        """What is held; `None` if it has ended."""


class _Hold(NamedTuple):
    task: Any
    store: _native.Store
    #: What was asked for; `None` for a task's claim.
    wanted: Optional[_request.Wanted]
    # A hold that nothing else knows is given back.
    owner: "weakref.ref[Owner]"


#: By thread; only that thread changes its list.
_by_thread: Dict[int, List[_Hold]] = {}


def current_task() -> Any:
    """The asyncio task that runs in this thread now."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def add(store: _native.Store, wanted: Optional[_request.Wanted], owner: Owner) -> None:
    """This thread and task hold it until it is given back."""
    hold = _Hold(current_task(), store, wanted, weakref.ref(owner))
    _by_thread[threading.get_ident()] = [*(hold for hold, _, _ in _live()), hold]


def _live() -> List[Tuple[_Hold, Owner, _native.Kept]]:
    live = []
    for hold in _by_thread.get(threading.get_ident(), []):
        owner = hold.owner()
        kept = None if owner is None else owner._kept()
        if owner is not None and kept is not None:
            live.append((hold, owner, kept))
    return live


def kept_by_thread() -> List[_native.Kept]:
    """What is not given back while this thread waits."""
    return [kept for _, _, kept in _live()]


def kept_by_task() -> List[_native.Kept]:
    """What is not given back while this asyncio task waits."""
    task = current_task()
    return [kept for hold, _, kept in _live() if hold.task is task]


def again(store: _native.Store, wanted: _request.Wanted, *, is_async: bool) -> Optional[Held]:
    """The hold of this thread, or task, of the same."""
    task = current_task()
    for hold, owner, _ in _live():
        is_own = hold.task is task or not is_async
        is_same = hold.store is store and _is_same(hold.wanted, wanted)
        if is_own and is_same and isinstance(owner, Held):
            return owner
    return None


def _is_same(one: Optional[_request.Wanted], other: _request.Wanted) -> bool:
    return one is not None and all(
        one[part] == other[part] for part in ("names", "are_paths", "file", "slots")
    )


def has_all_slots(store: _native.Store, wanted: _request.Wanted, keeps: List[_native.Kept]) -> bool:
    """Whether these are all slots of what is wanted."""
    own = [
        kept
        for hold, _, kept in _live()
        if hold.store is store and _is_same(hold.wanted, wanted) and kept in keeps
    ]
    return 0 < wanted["slots"] <= len(own)
