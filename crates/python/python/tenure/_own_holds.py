"""What each thread and each asyncio task holds: a wait for that without a limit would never end.

A hold counts as far as it is certain that nothing else gives it back: while its block or function runs, or
while the process has no other thread. What `acquire` returned may have been handed to another thread.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from typing import Any, List, NamedTuple, Optional, Protocol, Tuple

from . import _callers, _greenlets, _native, _request
from ._held import Held


class Owner(Protocol):
    """Something that holds until it is given back, or until nothing knows it any more."""

    def _kept(self) -> Optional[_native.Kept]:
        """What is held; `None` if it has ended, or is used by another thread than the one that took it."""


class _Hold(NamedTuple):
    task: Any
    call: object
    #: Whether it is given back when a block or function of this thread and task ends, and not before.
    ends_with_block: bool
    store: _native.Store
    #: What was asked for; `None` for a task's claim.
    wanted: Optional[_request.Wanted]
    # A hold that nothing else knows is given back.
    owner: "weakref.ref[Owner]"


def add(
    store: _native.Store,
    wanted: Optional[_request.Wanted],
    owner: Owner,
    *,
    ends_with_block: bool,
) -> None:
    """This thread and task hold it until it is given back."""
    task, call = _callers.current_task(), _callers.current_call()
    hold = _Hold(task, call, ends_with_block, store, wanted, weakref.ref(owner))
    own = [hold for hold, _, _ in _live()]
    _callers.current().holds = [*own, hold]


def _live() -> List[Tuple[_Hold, Owner, _native.Kept]]:
    live = []
    for hold in _callers.current().holds:
        owner = hold.owner()
        kept = None if owner is None else owner._kept()
        if owner is not None and kept is not None:
            live.append((hold, owner, kept))
    return live


def kept_by_thread() -> List[_native.Kept]:
    """What is certainly not given back while this thread waits."""
    return [kept for hold, _, kept in _live() if hold.ends_with_block or _is_only_thread()]


def kept_by_task() -> List[_native.Kept]:
    """What is certainly not given back while this asyncio task waits."""
    task = _callers.current_task()
    return [
        kept
        for hold, _, kept in _live()
        if hold.task is task and (hold.ends_with_block or _is_only_task())
    ]


def _is_only_thread() -> bool:
    return not _greenlets.are_used() and threading.active_count() == 1


def _is_only_task() -> bool:
    return _is_only_thread() and len(asyncio.all_tasks()) == 1


def again(store: _native.Store, wanted: _request.Wanted, *, is_async: bool) -> Optional[Held]:
    """The hold of this thread, or task, of the same."""
    task = _callers.current_task()
    # A call of a pool does not get what an earlier call in the same thread took and did not give back.
    call = None if _callers.is_in_event_loop() else _callers.current_call()
    for hold, owner, _ in _live():
        is_own = hold.task is task or not is_async
        is_calls = hold.ends_with_block or call is None or hold.call is call
        is_same = hold.store is store and _is_same(hold.wanted, wanted)
        if is_own and is_calls and is_same and isinstance(owner, Held):
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
