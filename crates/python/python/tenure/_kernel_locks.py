"""Updates of files where no store can be made, since there is no home to keep it in.

A lock file beside the file excludes other processes that have no store either. A store in memory serves
the threads of this process in order, and refuses waits for themselves.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import Dict, Optional

from . import _native, _request, filelock

#: By process: a forked one has a copy of its parent's, with holds that nobody gives back.
_stores: Dict[int, _native.Store] = {}

#: How often a lock file that another process has is tried.
POLL_INTERVAL = 0.01

#: A longer name of a file is replaced by its hash, so that the name of the lock file is not too long.
NAME_BYTES_MAX = 200


def store() -> _native.Store:
    """The store of this process."""
    known = _stores.get(os.getpid())
    return known or _stores.setdefault(os.getpid(), _native.Store.open("memory:"))


def wanted(path: str, operation: str, ttl: Optional[float]) -> _request.Wanted:
    """What to hold for a file in that store."""
    name = path.encode(errors="backslashreplace").decode()
    return _request.make([f"lock:update:{name}"], operation=operation, ttl=ttl)


class FileExclusion:
    """Keeps other processes without a store from a file, which this process holds."""

    def __init__(self, path: str) -> None:
        folder, name = os.path.split(path)
        if len(os.fsencode(name)) > NAME_BYTES_MAX:
            name = hashlib.sha256(os.fsencode(name)).hexdigest()
        self._lock = filelock.FileLock(
            os.path.join(folder, f".{name}.tenure-lock"),
            thread_local=False,
            poll_interval=POLL_INTERVAL,
        )

    def acquire(self, limit: Optional[float]) -> bool:
        """Waits for it, and says whether it was free in time."""
        try:
            self._lock.acquire(timeout=-1 if limit is None else limit)
        except filelock.Timeout:
            return False
        return True

    def release(self) -> None:
        """Gives it back, and removes the lock file. Can be done again after Ctrl-C."""
        descriptor = self._lock._hold().descriptor
        if descriptor is not None:
            # Those that wait for the removed file notice that, and make a new one.
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(descriptor), os.stat(self._lock.lock_file)):
                    os.unlink(self._lock.lock_file)
        self._lock.release()
