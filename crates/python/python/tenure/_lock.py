"""Locks: `with store.lock("deploy"):`."""

from __future__ import annotations

import functools
import inspect
import json
import threading
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type, TypeVar, cast

from . import _native, _request
from ._held import Held
from .errors import Busy, Deadlock, Timeout, busy

F = TypeVar("F", bound=Callable[..., Any])


class Lock:
    """A lock, a shared lock, a slot or globs of files, to be held once or many times.

    `with lock as held:` holds it. One object may be used by many threads: they exclude each other as
    strangers do.
    """

    def __init__(
        self,
        store: _native.Store,
        wanted: _request.Wanted,
        *,
        blocking: bool = True,
        timeout: Optional[float] = None,
    ) -> None:
        self._store = store
        self._wanted = wanted
        self._blocking = blocking
        self._timeout = timeout
        self._holds: Dict[int, List[Held]] = {}

    def acquire(
        self, blocking: Optional[bool] = None, timeout: Optional[float] = None
    ) -> Held:
        """Holds it, and returns the hold.

        Raises `Timeout` if it did not become free in time, and `Busy` (which is a `Timeout`) if it is not
        free and was not waited for.
        """
        if blocking is None:
            blocking = self._blocking
        limit = _request.patience(blocking, self._timeout if timeout is None else timeout)
        thread = threading.get_ident()
        own = self._holds.get(thread)
        if own:
            # Holds that were given back by their own `release` are forgotten here.
            own[:] = [held for held in own if not held._guard.is_released()]
        if own and limit is None and self._wanted["slots"] == _request.EXCLUSIVE:
            if any(not held.lost.is_set() for held in own):
                raise Deadlock(f"this thread holds {_request.shown(self._wanted)} already")
        answer = self._store.hold(self._wanted, limit)
        if isinstance(answer, str):
            raise busy(Busy if limit == 0 else Timeout, answer)
        held = Held(answer)
        if own is None:
            self._holds[thread] = [held]
        else:
            own.append(held)
        return held

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
        self._pop().release()

    def _pop(self) -> Held:
        thread = threading.get_ident()
        if thread not in self._holds:
            thread = next(iter(self._holds), thread)
        own = self._holds.get(thread)
        if not own:
            raise RuntimeError(f"{_request.shown(self._wanted)} is not held by this object")
        held = own.pop()
        if not own:
            del self._holds[thread]
        return held

    @property
    def held(self) -> Optional[Held]:
        """What this thread took last by this object."""
        own = self._holds.get(threading.get_ident())
        return own[-1] if own else None

    def locked(self) -> bool:
        """Whether anyone holds it now."""
        return bool(self.status()["locked"])

    def status(self) -> Dict[str, Any]:
        """Who holds it and who waits: `locked`, `holder`, `holders`, `waiting`, `we_hold_it`."""
        seen = json.loads(self._store.look(self._wanted["names"], self._wanted["are_paths"]))
        tokens = {held.token for own in list(self._holds.values()) for held in own}
        holders = [hold for hold in seen["holds"] if not hold["is_stale"]]
        return {
            "locked": bool(holders),
            "holder": holders[0] if holders else None,
            "holders": holders,
            "stale": [hold for hold in seen["holds"] if hold["is_stale"]],
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
            if self._store.break_hold(hold["resource"], hold["token"], reason):
                broken.append(hold)
        return broken

    def __enter__(self) -> Held:
        return self.acquire()

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        held = self._pop()
        if kind is None:
            held.release()
            return
        try:
            held.release()
        except Exception:
            # What ended the block matters more than how the lock ended.
            pass

    def __repr__(self) -> str:
        state = "held here" if self._holds else "not held here"
        return f"<tenure.Lock {_request.shown(self._wanted)} {state}>"


def decorate(lock: Callable[[], Lock], on_busy: str) -> Callable[[F], F]:
    """A decorator that holds the lock while the function runs."""
    if on_busy not in ("raise", "skip"):
        raise ValueError('on_busy is "raise" or "skip"')

    def decorator(function: F) -> F:
        if inspect.iscoroutinefunction(function):
            raise TypeError("use tenure.aio.locked for a coroutine function")

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            own = lock()
            try:
                own.acquire()
            except Timeout:
                if on_busy == "skip":
                    return None
                raise
            try:
                result = function(*args, **kwargs)
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
