"""The locks for asyncio: `async with tenure.aio.lock("deploy"):`.

However many tasks wait, they take one thread of the process and none of the event loop.
"""

from __future__ import annotations

import asyncio
import functools
from types import TracebackType
from typing import Any, Awaitable, Callable, Dict, List, Optional, Tuple, Type, TypeVar, cast

from . import _callables, _callers, _own_holds, _request, _store
from ._asyncio import call
from ._held import Held
from .errors import Busy, Deadlock, Timeout, busy

__all__ = ["Lock", "lock", "locked", "paths", "slots"]

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


class Lock:
    """A lock, a shared lock, a slot or globs of files, for `async with`."""

    def __init__(
        self,
        store: Optional[_store.Store],
        wanted: _request.Wanted,
        *,
        blocking: bool = True,
        timeout: Optional[float] = None,
        reentrant: bool = False,
    ) -> None:
        self._store = store
        self._reentrant = reentrant
        self._wanted = wanted
        self._blocking = blocking
        self._timeout = timeout
        self._holds: Dict[Any, List[Tuple[Held, object]]] = {}

    async def acquire(
        self, blocking: Optional[bool] = None, timeout: Optional[float] = None
    ) -> Held:
        """Holds it, and returns the hold. Raises `Timeout`, `Busy` or `Deadlock`; see `tenure.Lock`."""
        return await self._acquire(blocking, timeout, ends_with_block=False)

    async def _acquire(
        self, blocking: Optional[bool], timeout: Optional[float], *, ends_with_block: bool
    ) -> Held:
        if blocking is None:
            blocking = self._blocking
        limit = _request.patience(blocking, self._timeout if timeout is None else timeout)
        store = _store.native(self._store)
        if self._reentrant:
            held = _own_holds.again(store, self._wanted, is_async=True)
            if held is not None:
                self._remember(held)
                return held
        keeps = [] if limit == 0 else _own_holds.kept_by_task()
        if limit is None and _own_holds.has_all_slots(store, self._wanted, keeps):
            shown = _request.shown(self._wanted)
            raise Deadlock(f"this task holds all slots of {shown} already")
        answer = await call(lambda done: store.start_hold(self._wanted, limit, keeps, done))
        if isinstance(answer, str):
            raise busy(Busy if limit == 0 else Timeout, answer)
        held = Held(answer)
        self._remember(held)
        _own_holds.add(store, self._wanted, held, ends_with_block=ends_with_block)
        return held

    def _remember(self, held: Held) -> None:
        """This task holds it by this object."""
        task = asyncio.current_task()
        # Holds that were given back by their own `release` are forgotten here.
        own = [one for one in self._holds.get(task, []) if not one[0]._guard.is_released()]
        self._holds[task] = [*own, (held, held._take())]

    async def release(self) -> None:
        """Gives back what this task took last. Raises `Lost` if it was lost before."""
        await self._give_back(*self._pop())

    def _pop(self) -> Tuple[Held, object]:
        task: Any = asyncio.current_task()
        if task not in self._holds:
            task = next(iter(self._holds), task)
        own = self._holds.get(task)
        if not own:
            raise RuntimeError(f"{_request.shown(self._wanted)} is not held by this object")
        taken = own.pop()
        if not own:
            del self._holds[task]
        return taken

    async def _give_back(self, held: Held, taker: object) -> None:
        if held._is_inherited() or held._leaves_others(taker):
            return
        # A cancelled task still gives back: it goes on in the background.
        released = asyncio.ensure_future(call(held._guard.start_release))
        try:
            was_held = await asyncio.shield(released)
        except Exception:
            held._release_failed = True
            raise
        held._given_back(was_held)

    async def __aenter__(self) -> Held:
        return await self._acquire(None, None, ends_with_block=not _callers.is_generator(1))

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        taken = self._pop()
        if kind is None:
            await self._give_back(*taken)
            return
        try:
            await self._give_back(*taken)
        except Exception:
            # What ended the block matters more than how the lock ended.
            pass

    def __repr__(self) -> str:
        state = "held here" if self._holds else "not held here"
        return f"<tenure.aio.Lock {_request.shown(self._wanted)} {state}>"


def lock(
    name: str,
    *,
    shared: bool = False,
    timeout: Optional[float] = None,
    blocking: bool = True,
    ttl: Optional[float] = None,
    operation: Optional[str] = None,
    store: Optional[_store.Store] = None,
    reentrant: bool = False,
) -> Lock:
    """A lock of the default store, or of this one; see `tenure.lock`."""
    mode = _request.SHARED if shared else _request.EXCLUSIVE
    wanted = _request.make([name], slots=mode, operation=operation, ttl=ttl)
    return Lock(store, wanted, blocking=blocking, timeout=timeout, reentrant=reentrant)


def slots(
    name: str,
    count: int,
    *,
    timeout: Optional[float] = None,
    blocking: bool = True,
    ttl: Optional[float] = None,
    operation: Optional[str] = None,
    store: Optional[_store.Store] = None,
) -> Lock:
    """One of so many slots; see `tenure.slots`."""
    wanted = _request.make([name], slots=_store.slot_count(count), operation=operation, ttl=ttl)
    return Lock(store, wanted, blocking=blocking, timeout=timeout)


def paths(
    *globs: str,
    shared: bool = False,
    timeout: Optional[float] = None,
    blocking: bool = True,
    ttl: Optional[float] = None,
    operation: Optional[str] = None,
    store: Optional[_store.Store] = None,
) -> Lock:
    """The files of these globs, all or nothing; see `tenure.paths`."""
    mode = _request.SHARED if shared else _request.EXCLUSIVE
    wanted = _request.make(globs, are_paths=True, slots=mode, operation=operation, ttl=ttl)
    return Lock(store, wanted, blocking=blocking, timeout=timeout)


def locked(
    name: str,
    *,
    on_busy: str = "raise",
    shared: bool = False,
    timeout: Optional[float] = None,
    blocking: bool = True,
    ttl: Optional[float] = None,
    operation: Optional[str] = None,
    store: Optional[_store.Store] = None,
    reentrant: bool = False,
) -> Callable[[F], F]:
    """A decorator that holds a lock while a coroutine function runs; see `tenure.locked`."""
    if on_busy not in ("raise", "skip"):
        raise ValueError('on_busy is "raise" or "skip"')

    def decorator(function: F) -> F:
        _callables.refuse_generator(function)
        what = operation or getattr(function, "__name__", None)

        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            own = lock(
                name,
                shared=shared,
                timeout=timeout,
                blocking=blocking,
                ttl=ttl,
                operation=what,
                store=store,
                reentrant=reentrant,
            )
            try:
                await own._acquire(None, None, ends_with_block=True)
            except Timeout:
                if on_busy == "skip":
                    return None
                raise
            try:
                result = await function(*args, **kwargs)
                _callables.refuse_later(result)
            except BaseException:
                try:
                    await own.release()
                except Exception:
                    pass
                raise
            await own.release()
            return result

        return cast(F, wrapper)

    return decorator
