"""Awaits what the native part does in its background thread."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Optional

from . import _native

Done = Callable[[Any, Optional[BaseException]], None]


async def call(start: Callable[[Done], Optional[_native.Pending]]) -> Any:
    """Starts it and awaits its result. If the task is cancelled, nothing stays held or queued."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: Optional[BaseException]) -> None:
        # If it was cancelled meanwhile, the result is dropped, and releases what it holds.
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def done(result: Any, error: Optional[BaseException]) -> None:
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            # The loop was closed: the result is dropped.
            pass

    pending = start(done)
    if pending is None:
        return None
    try:
        return await future
    except asyncio.CancelledError:
        pending.cancel()
        raise
