"""What each thread and each asyncio task holds: a wait for that without a limit would never end."""

from __future__ import annotations

import asyncio
import threading
import warnings
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _native, _request
from ._held import Held


class _Hold(NamedTuple):
    task: Any
    store: _native.Store
    wanted: _request.Wanted
    # A hold that nothing else knows is given back.
    held: "weakref.ref[Held]"


#: By thread; only that thread changes its list.
_by_thread: Dict[int, List[_Hold]] = {}


def current_task() -> Any:
    """The asyncio task that runs in this thread now."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def add(store: _native.Store, wanted: _request.Wanted, held: Held) -> None:
    """This thread and task hold it until it is released."""
    hold = _Hold(current_task(), store, wanted, weakref.ref(held))
    _by_thread[threading.get_ident()] = [*(hold for hold, _ in _live()), hold]


def _live() -> List[Tuple[_Hold, Held]]:
    holds = _by_thread.get(threading.get_ident(), [])
    known = [(hold, hold.held()) for hold in holds]
    return [(hold, held) for hold, held in known if held is not None and not held.has_ended()]


def kept_by_thread() -> List[_native.Guard]:
    """What is not given back while this thread waits."""
    return [held._guard for _, held in _live()]


def kept_by_task() -> List[_native.Guard]:
    """What is not given back while this asyncio task waits."""
    task = current_task()
    return [held._guard for hold, held in _live() if hold.task is task]


def again(store: _native.Store, wanted: _request.Wanted, *, is_async: bool) -> Optional[Held]:
    """The hold of this thread, or task, of the same."""
    task = current_task()
    for hold, held in _live():
        is_own = hold.task is task or not is_async
        if is_own and hold.store is store and _is_same(hold.wanted, wanted):
            return held
    return None


def _is_same(one: _request.Wanted, other: _request.Wanted) -> bool:
    return (one["names"], one["are_paths"], one["slots"]) == (
        other["names"],
        other["are_paths"],
        other["slots"],
    )


def has_all_slots(store: _native.Store, wanted: _request.Wanted, keeps: List[_native.Guard]) -> bool:
    """Whether these are all slots of what is wanted."""
    own = [
        held
        for hold, held in _live()
        if hold.store is store and _is_same(hold.wanted, wanted) and held._guard in keeps
    ]
    return 0 < wanted["slots"] <= len(own)


def warn_of_own(store: _native.Store, wanted: _request.Wanted) -> None:
    """Warns before a wait, which has a limit, for what this thread holds by itself."""
    for hold, _ in _live():
        is_shared = hold.wanted["slots"] == wanted["slots"] != _request.EXCLUSIVE
        if hold.store is store and hold.wanted["names"] == wanted["names"] and not is_shared:
            shown = _request.shown(wanted)
            message = f"this thread waits for {shown}, which it holds itself; see reentrant=True"
            warnings.warn(message, RuntimeWarning, stacklevel=4)
            return
