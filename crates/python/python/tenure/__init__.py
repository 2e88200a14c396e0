"""Locks, leases and task claims for fleets of agents and workers.

    import tenure

    with tenure.lock("deploy", timeout=5) as held:
        print(held.token)

The functions here use the store that the `tenure` command would use in the current folder; `open` opens
another, which has the same functions as methods. `aio` is for asyncio, `filelock` replaces the package of
that name, `testing` has a fixture for pytest, and `errors` has all exceptions.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, TypeVar

from . import _files, _store, aio, errors
from ._files import JsonUpdate
from ._held import Held, Takeover
from ._lock import Lock
from ._native import version as __version__
from ._store import Store, default as default_store, open, use
from ._tasks import Job, Task
from ._tasks import Tasks as _Tasks
from ._worker import Report, Worker
from .errors import (
    Busy,
    Deadlock,
    FileChanged,
    FileError,
    InvalidRequest,
    Lost,
    NoSuchTask,
    StoreError,
    StoreGone,
    StoreUnavailable,
    TaskError,
    TenureError,
    Timeout,
    UnknownOutcome,
)

__all__ = [
    "Busy",
    "Deadlock",
    "FileChanged",
    "FileError",
    "Held",
    "InvalidRequest",
    "Job",
    "JsonUpdate",
    "Lock",
    "Lost",
    "NoSuchTask",
    "Report",
    "Store",
    "StoreError",
    "StoreGone",
    "StoreUnavailable",
    "Takeover",
    "Task",
    "TaskError",
    "Tasks",
    "TenureError",
    "Timeout",
    "UnknownOutcome",
    "Worker",
    "__version__",
    "aio",
    "append_line",
    "default_store",
    "errors",
    "lock",
    "locked",
    "open",
    "paths",
    "slots",
    "status",
    "update_json",
    "use",
]

F = TypeVar("F", bound=Callable[..., Any])


def lock(
    name: str,
    *,
    shared: bool = False,
    timeout: Optional[float] = None,
    blocking: bool = True,
    ttl: Optional[float] = None,
    operation: Optional[str] = None,
    reentrant: bool = False,
) -> Lock:
    """A lock: `with tenure.lock("deploy", timeout=5) as held:`.

    It waits for as long as it takes; with a `timeout` it raises `Timeout` after so many seconds, and with
    `blocking=False` it raises `Busy` at once. `shared` holds beside other shared holders. `ttl` is the
    lease in seconds, 30 unless said otherwise; it is renewed while this process lives. `operation` is what
    it is for, shown to everyone who waits. With `reentrant=True` a thread that holds it takes it again at
    once; otherwise it raises `Deadlock`, for it would wait for itself.

    The store is found when the lock is taken.
    """
    return _store.make_lock(
        lambda: default_store()._native,
        name,
        shared=shared,
        timeout=timeout,
        blocking=blocking,
        ttl=ttl,
        operation=operation,
        reentrant=reentrant,
    )


def slots(
    name: str,
    count: int,
    *,
    timeout: Optional[float] = None,
    blocking: bool = True,
    ttl: Optional[float] = None,
    operation: Optional[str] = None,
) -> Lock:
    """One of so many slots; `held.index` is its number, from 0, which no other holder has."""
    return _store.make_slots(
        lambda: default_store()._native,
        name,
        count,
        timeout=timeout,
        blocking=blocking,
        ttl=ttl,
        operation=operation,
    )


def paths(
    *globs: str,
    shared: bool = False,
    timeout: Optional[float] = None,
    blocking: bool = True,
    ttl: Optional[float] = None,
    operation: Optional[str] = None,
) -> Lock:
    """The files of these globs, all or nothing. Overlapping globs exclude each other.

    They are relative to the current folder, as on the command line.
    """
    return _store.make_paths(
        lambda: default_store()._native,
        *globs,
        shared=shared,
        timeout=timeout,
        blocking=blocking,
        ttl=ttl,
        operation=operation,
    )


def locked(
    name: str,
    *,
    on_busy: str = "raise",
    shared: bool = False,
    timeout: Optional[float] = None,
    blocking: bool = True,
    ttl: Optional[float] = None,
    operation: Optional[str] = None,
    reentrant: bool = False,
) -> Callable[[F], F]:
    """A decorator that holds a lock while a function runs.

    A function that calls itself needs `reentrant=True`. A generator is refused: it runs after the call.
    If it is not free in time, the call raises `Timeout` or `Busy`; with `on_busy="skip"` it returns `None`
    without calling the function.
    """
    return _store.locked(
        default_store,
        name,
        on_busy=on_busy,
        shared=shared,
        timeout=timeout,
        blocking=blocking,
        ttl=ttl,
        operation=operation,
        reentrant=reentrant,
    )


def update_json(
    path: _files.Path,
    *,
    default: Any = None,
    timeout: Optional[float] = None,
    ttl: Optional[float] = None,
    indent: Optional[int] = 2,
    backup: Optional[str] = None,
    operation: Optional[str] = None,
) -> JsonUpdate:
    """Changes a file of JSON without losing updates: `with tenure.update_json("n.json") as d: d["n"] += 1`.

    The file is replaced in one step when the block ends, and left as it is if the block raises, if the
    lease was lost (`Lost`), or if another program changed it meanwhile (`FileChanged`). A missing file
    begins as `default`, or as an empty dictionary. `backup` is a suffix under which the old content is kept.
    Where there is no store for lack of a home, a lock file beside the file excludes others like it.
    """
    return _files.JsonUpdate(
        lambda: _store.of_file_if_any(path),
        path,
        default=default,
        timeout=timeout,
        ttl=ttl,
        indent=indent,
        backup=backup,
        operation=operation,
    )


def append_line(
    path: _files.Path, line: Any, *, timeout: Optional[float] = None, sync: bool = False
) -> None:
    """Appends one whole line: a text as it is, anything else as JSON.

    Lines of several writers never mix. With `sync` the line is on disk when the call returns. It takes the
    kernel's lock on the file while it writes, and needs no store; where the settings choose a store of
    `dialect=memory` for the file, also the lock of that folder.
    """
    _store.append_line(path, line, timeout=timeout, sync=sync)


def status() -> List[Dict[str, Any]]:
    """All that is held now in the default store."""
    return default_store().status()


class Tasks(_Tasks):
    """The tasks of the default store, or of this one: each goes to one worker.

    The store is found when it is first used.
    """

    def __init__(self, store: Optional[Store] = None) -> None:
        super().__init__(lambda: _store.native(store))


def __getattr__(name: str) -> Any:
    # Not imported by every program that only needs a lock.
    if name in ("filelock", "testing"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
