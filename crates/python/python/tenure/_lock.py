"""Locks: `with store.lock("deploy"):`."""

from __future__ import annotations

import functools
import json
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar, cast

from . import _callables, _callers, _greenlets, _native, _own_holds, _request
from ._held import Held
from .errors import Busy, Deadlock, Timeout, busy

F = TypeVar("F", bound=Callable[..., Any])


class Lock(_native.ExitsAlways):
    """A lock, a shared lock, a slot or globs of files, to be held once or many times.

    `with lock as held:` holds it. One object may be used by many threads: they exclude each other as
    strangers do.
    """

    def __init__(
        self,
        store: Callable[[], _native.Store],
        wanted: _request.Wanted,
        *,
        blocking: bool = True,
        timeout: Optional[float] = None,
        reentrant: bool = False,
    ) -> None:
        self._store = store
        self._wanted = wanted
        self._blocking = blocking
        self._timeout = timeout
        self._reentrant = reentrant
        #: By the thread that took it.
        self._holds: Dict[_callers.Caller, List[Tuple[Held, object]]] = {}

    def acquire(
        self, blocking: Optional[bool] = None, timeout: Optional[float] = None
    ) -> Held:
        """Holds it, and returns the hold.

        Raises `Timeout` if it did not become free in time, and `Busy` (which is a `Timeout`) if it is not
        free and was not waited for. Raises `Deadlock` if the wait would certainly never end: for what this
        thread holds itself, or for a holder that waits for what this thread holds.
        """
        return self._acquire(blocking, timeout, ends_with_block=False)

    def _acquire(
        self, blocking: Optional[bool], timeout: Optional[float], *, ends_with_block: bool
    ) -> Held:
        if blocking is None:
            blocking = self._blocking
        limit = _request.patience(blocking, self._timeout if timeout is None else timeout)
        store = self._store()
        if self._reentrant:
            held = _own_holds.again(store, self._wanted, is_async=False)
            if held is not None:
                self._remember(held)
                return held
        keeps = [] if limit == 0 else _own_holds.kept_by_thread()
        if limit is None and _own_holds.has_all_slots(store, self._wanted, keeps):
            shown = _request.shown(self._wanted)
            raise Deadlock(f"this thread holds all slots of {shown} already")
        answer = None
        try:
            answer = _greenlets.hold(store, self._wanted, limit, keeps)
            if isinstance(answer, str):
                raise busy(Busy if limit == 0 else Timeout, answer)
            held = Held(answer)
            self._remember(held)
            _own_holds.add(store, self._wanted, held, ends_with_block=ends_with_block)
            return held
        except BaseException:
            # Ctrl-C just after it was taken.
            if answer is not None and not isinstance(answer, str):
                answer.release()
            raise

    def _remember(self, held: Held) -> None:
        """This thread holds it by this object."""
        # Holds that were given back by their own `release` are forgotten here.
        for ended in [thread for thread in list(self._holds) if thread.has_ended]:
            if not _unreleased(self._holds.get(ended, [])):
                self._holds.pop(ended, None)
        thread = _callers.current()
        own = _unreleased(self._holds.get(thread, []))
        self._holds[thread] = [*own, (held, held._take())]

    def try_acquire(self) -> Optional[Held]:
        """Holds it if it is free now, and returns the hold; `None` if it is not."""
        try:
            return self.acquire(blocking=False)
        except Busy:
            return None

    def release(self) -> None:
        """Gives back what this thread took last by this object, or else what any thread did.

        Raises `Lost` if it was lost before, and `RuntimeError` if nothing was taken.
        """
        thread = _callers.current()
        if thread not in self._holds:
            thread = next(iter(self._holds), thread)
        own = self._holds.get(thread)
        if not own:
            raise RuntimeError(f"{_request.shown(self._wanted)} is not held by this object")
        held, taker = own[-1]
        try:
            held._leave(taker)
        finally:
            # Not before, so that it can be done again after Ctrl-C.
            self._holds[thread] = [one for one in own if one[1] is not taker]
            if not self._holds[thread]:
                del self._holds[thread]

    @property
    def held(self) -> Optional[Held]:
        """What this thread took last by this object."""
        own = self._holds.get(_callers.current())
        return own[-1][0] if own else None

    def locked(self) -> bool:
        """Whether anyone holds it now."""
        return bool(self.status()["locked"])

    def status(self) -> Dict[str, Any]:
        """Who holds it and who waits: `locked`, `holder`, `holders`, `waiting`, `we_hold_it`; and whether it
        is left of a holder that died or lapsed: `stale`, `is_stale`, `stale_reason`."""
        wanted = self._wanted
        seen = json.loads(_greenlets.look(self._store(), wanted["names"], wanted["are_paths"]))
        tokens = {held.token for own in list(self._holds.values()) for held, _ in own}
        holders = [hold for hold in seen["holds"] if not hold["is_stale"]]
        stale = [hold for hold in seen["holds"] if hold["is_stale"]]
        return {
            "locked": bool(holders),
            "holder": holders[0] if holders else None,
            "holders": holders,
            "stale": stale,
            "is_stale": bool(stale) and not holders,
            "stale_reason": stale[0]["stale_reason"] if stale and not holders else None,
            "waiting": seen["waiting"],
            "we_hold_it": any(hold["token"] in tokens for hold in holders),
        }

    def force_release(self, reason: str) -> List[Dict[str, Any]]:
        """Breaks the holds in the way, for an operator who knows that it is safe; returns them.

        The reason is written to the log of events, and each holder learns that it lost its hold. A holder
        that died needs no help: the next one takes over at once.
        """
        if not reason.strip():
            raise ValueError("say why the lock is broken")
        broken = []
        for hold in self.status()["holders"]:
            if _greenlets.break_hold(self._store(), hold["resource"], hold["token"], reason):
                broken.append(hold)
        return broken

    def __enter__(self) -> Held:
        return self._acquire(None, None, ends_with_block=not _callers.is_generator(1))

    def _count(self) -> int:
        """How much this thread holds by this object; see `ExitsAlways`."""
        return len(self._holds.get(_callers.current(), []))

    def _exit(self, error: Optional[BaseException], count: int) -> None:
        """Gives back what was taken last, unless that was done; see `ExitsAlways`."""
        if self._count() < count:
            return
        try:
            self.release()
        except Exception:
            # What ended the block matters more than how the lock ended.
            if error is None:
                raise

    def __repr__(self) -> str:
        state = "held here" if self._holds else "not held here"
        return f"<tenure.Lock {_request.shown(self._wanted)} {state}>"


def _unreleased(holds: List[Tuple[Held, object]]) -> List[Tuple[Held, object]]:
    return [one for one in holds if not one[0]._guard.is_released()]


def decorate(lock: Callable[[], Lock], on_busy: str) -> Callable[[F], F]:
    """A decorator that holds the lock while the function runs."""
    if on_busy not in ("raise", "skip"):
        raise ValueError('on_busy is "raise" or "skip"')

    def decorator(function: F) -> F:
        if _callables.is_coroutine_function(function):
            raise TypeError("use tenure.aio.locked for a coroutine function")
        _callables.refuse_generator(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            own = lock()
            try:
                own._acquire(None, None, ends_with_block=True)
            except Timeout:
                if on_busy == "skip":
                    return None
                raise
            try:
                result = function(*args, **kwargs)
                _callables.refuse_later(result)
            except BaseException:
                try:
                    own.release()
                except Exception:
                    pass
                raise
            own.release()
            return result

        return cast(F, wrapper)

    return decorator
