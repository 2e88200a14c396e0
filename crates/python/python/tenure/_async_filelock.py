"""The file lock for asyncio; see `tenure.filelock`."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
from types import TracebackType
from typing import Any, Callable, Dict, Optional, Type, TypeVar, Union

from .filelock import (
    _UNSET_FILE_MODE,
    BaseFileLock,
    Timeout,
    UnixFileLock,
    _canonical,
    _raise_both,
    _Wait,
)

A = TypeVar("A", bound="BaseAsyncFileLock")
T = TypeVar("T")


class AsyncAcquireReturnProxy:
    """What `acquire` returns: leaving its block releases the lock."""

    def __init__(self, lock: BaseAsyncFileLock) -> None:
        self.lock = lock

    async def __aenter__(self) -> BaseAsyncFileLock:
        return self.lock

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.lock._release_in_context(error)


class BaseAsyncFileLock(BaseFileLock):
    """A lock on a file for asyncio. It waits in short steps, so that no thread is kept by a wait."""

    def __init__(
        self,
        lock_file: Union[str, "os.PathLike[str]"],
        timeout: float = -1,
        mode: int = _UNSET_FILE_MODE,
        thread_local: bool = False,
        *,
        blocking: bool = True,
        is_singleton: bool = False,
        poll_interval: float = 0.05,
        lifetime: Optional[float] = None,
        context_error_policy: str = "chain",
        close_error_policy: str = "default",
        fallback_to_soft: bool = True,
        preserve_lock_file: bool = False,
        on_acquired: Optional[Callable[[int], None]] = None,
        loop: Optional[asyncio.AbstractEventLoop] = None,
        run_in_executor: bool = True,
        executor: Optional[concurrent.futures.Executor] = None,
    ) -> None:
        if thread_local and run_in_executor:
            raise ValueError("run_in_executor is not supported when thread_local is True")
        super().__init__(
            lock_file,
            timeout,
            mode,
            thread_local,
            blocking=blocking,
            is_singleton=is_singleton,
            poll_interval=poll_interval,
            lifetime=lifetime,
            context_error_policy=context_error_policy,
            close_error_policy=close_error_policy,
            fallback_to_soft=fallback_to_soft,
            preserve_lock_file=preserve_lock_file,
            on_acquired=on_acquired,
        )
        self._loop = loop
        self._run_in_executor = run_in_executor
        self._executor = executor

    def _arguments(self) -> Dict[str, Any]:
        own = {
            "loop": self._loop,
            "run_in_executor": self._run_in_executor,
            "executor": self._executor,
        }
        return {**super()._arguments(), **own}

    @property
    def run_in_executor(self) -> bool:
        """Whether files are opened and locked in a thread."""
        return self._run_in_executor

    @property
    def executor(self) -> Optional[concurrent.futures.Executor]:
        """The threads in which that happens; those of the event loop if `None`."""
        return self._executor

    @executor.setter
    def executor(self, value: Optional[concurrent.futures.Executor]) -> None:
        self._executor = value

    @property
    def loop(self) -> Optional[asyncio.AbstractEventLoop]:
        """The event loop, if one was given."""
        return self._loop

    async def acquire(  # type: ignore[override]
        self,
        timeout: Optional[float] = None,
        poll_interval: Optional[float] = None,
        *,
        blocking: Optional[bool] = None,
        cancel_check: Optional[Callable[[], bool]] = None,
    ) -> AsyncAcquireReturnProxy:
        """Takes the lock, or raises `Timeout`. Each further call counts one level."""
        wait = self._wait(timeout, poll_interval, blocking, cancel_check)
        hold = self._hold()
        if hold.descriptor is not None:
            hold.counter += 1
            return AsyncAcquireReturnProxy(self)
        if wait.is_endless:
            self._refuse_deadlock(_canonical(self.lock_file), wait.scope)
        while True:
            # One try at a time: another task of this loop may be the holder.
            once = _Wait(self.lock_file, 0.0, False, wait.interval, None, wait.scope)
            try:
                if await self._in_executor(lambda: self._try(once)):
                    return AsyncAcquireReturnProxy(self)
            except asyncio.CancelledError:
                # The thread may have taken it after all.
                if self.is_locked:
                    await self._in_executor(lambda: BaseFileLock.release(self))
                raise
            wait.give_up_if_due()
            await asyncio.sleep(wait.step())

    def _try(self, once: _Wait) -> bool:
        try:
            self._acquire_within(once)
        except Timeout:
            return False
        return True

    async def release(self, force: bool = False) -> None:  # type: ignore[override]
        """Gives one level back, or all with `force`."""
        hold = self._hold()
        if hold.descriptor is not None and hold.counter > 1 and not force:
            hold.counter -= 1
            return
        await self._in_executor(lambda: BaseFileLock.release(self, force))

    async def _in_executor(self, call: Callable[[], T]) -> T:
        if not self._run_in_executor:
            return call()
        loop = self._loop or asyncio.get_running_loop()
        done = loop.run_in_executor(self._executor, call)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            # A thread cannot be stopped: what it did counts.
            await asyncio.wait([done])
            raise

    def __enter__(self) -> Any:
        raise NotImplementedError("Do not use `with` for asyncio locks, use `async with` instead.")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        raise NotImplementedError("Do not use `with` for asyncio locks, use `async with` instead.")

    async def __aenter__(self: A) -> A:
        await self.acquire()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self._release_in_context(error)

    async def _release_in_context(self, error: Optional[BaseException]) -> None:
        try:
            await self.release()
        except BaseException as release_error:
            if error is None or self._context_error_policy == "chain":
                raise
            _raise_both(error, release_error)

    _holder_words = "FileLock instance in this task"

    def _scope(self) -> Any:
        return asyncio.current_task()


class AsyncUnixFileLock(UnixFileLock, BaseAsyncFileLock):
    """A lock of the store, and the kernel's lock on the file, for asyncio."""


AsyncFileLock = AsyncUnixFileLock
