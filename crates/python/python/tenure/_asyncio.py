"""Awaits what the native part does in its background thread."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Optional

from . import _native, _warnings


class _Done:
    """Takes the result from the background thread to the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self._loop.create_future()

    def __call__(self, result: Any, error: Optional[BaseException]) -> None:
        self._call_soon(self._settle, result, error)

    def warn(self, message: str) -> None:
        self._call_soon(_warnings.warn, message)

    def _call_soon(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            # The loop was closed: the result is dropped.
            pass

    def _settle(self, result: Any, error: Optional[BaseException]) -> None:
        # If it was cancelled meanwhile, the result is dropped, and releases what it holds.
        if self.future.cancelled():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


async def call(start: Callable[[_native.Done], Optional[_native.Pending]]) -> Any:
    """Starts it and awaits its result. If the task is cancelled, nothing stays held or queued."""
    done = _Done()
    pending = start(done)
    if pending is None:
        return None
    try:
        return await done.future
    except asyncio.CancelledError:
        pending.cancel()
        raise
