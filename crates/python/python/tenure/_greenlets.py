"""Calls that block: the thread, or where gevent replaced threads only the greenlet."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Callable, List, Optional, Tuple, Union

from . import _native, _request

Done = Callable[[Any, Optional[BaseException]], None]


def hold(
    store: _native.Store,
    wanted: _request.Wanted,
    limit: Optional[float],
    keeps: List[_native.Guard],
) -> Union[_native.Guard, str]:
    """Takes what is wanted; a guard, or who is in the way as JSON."""
    if not _has_greenlets():
        return store.hold(wanted, limit, keeps)
    answer: Union[_native.Guard, str] = _wait(
        lambda done: store.start_hold(wanted, limit, keeps, done)
    )
    return answer


def release(guard: _native.Guard) -> Optional[bool]:
    """Gives it back; says whether it was held until now. `None` if it was given back before."""
    if not _has_greenlets():
        return guard.release()
    released: Optional[bool] = _wait(guard.start_release)
    return released


def wait_lost(guard: _native.Guard, limit: Optional[float]) -> bool:
    """Waits until the lease is lost or released, up to a limit; says whether it is."""
    if not _has_greenlets():
        return guard.wait_lost(limit)
    lost: bool = _wait(lambda done: guard.start_wait_lost(limit, done))
    return lost


def _has_greenlets() -> bool:
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and monkey.is_module_patched("threading")


def _wait(start: Callable[[Done], Optional[_native.Pending]]) -> Any:
    """Starts it and lets other greenlets run until it is done. If the greenlet is killed, nothing stays
    held or queued."""
    # It has no types.
    gevent: Any = importlib.import_module("gevent")
    event: Any = importlib.import_module("gevent.event")
    woken = event.Event()
    watcher = gevent.get_hub().loop.async_()
    watcher.start(woken.set)
    answers: List[Tuple[Any, Optional[BaseException]]] = []

    def done(result: Any, error: Optional[BaseException]) -> None:
        # In another thread, where only the watcher may be used.
        answers.append((result, error))
        watcher.send()

    pending = start(done)
    if pending is None:
        watcher.close()
        return None
    try:
        woken.wait()
    except BaseException:
        pending.cancel()
        raise
    finally:
        watcher.stop()
        watcher.close()
    result, error = answers.pop()
    if error is not None:
        raise error
    return result
