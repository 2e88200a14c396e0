"""Stores: where it is remembered what is held."""

from __future__ import annotations

import json
import os
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar

from . import _files, _greenlets, _native, _request
from ._lock import Lock, decorate
from ._tasks import Tasks
from .errors import FileError, NoHome

F = TypeVar("F", bound=Callable[..., Any])


def slot_count(count: int) -> int:
    """Refuses what is no number of slots, and would mean another mode."""
    if count < 1:
        raise ValueError("there must be at least one slot")
    return count


class Store:
    """A store that was opened by `tenure.open`, or that the command would use here."""

    def __init__(self, native: _native.Store) -> None:
        self._native = native

    @property
    def url(self) -> str:
        """Its URL, without a password."""
        return self._native.url

    @property
    def label(self) -> str:
        """The name under which this program holds."""
        return self._native.label

    def lock(
        self,
        name: str,
        *,
        shared: bool = False,
        timeout: Optional[float] = None,
        blocking: bool = True,
        ttl: Optional[float] = None,
        operation: Optional[str] = None,
        reentrant: bool = False,
    ) -> Lock:
        """A lock of this store; see `tenure.lock`."""
        return make_lock(
            lambda: self._native,
            name,
            shared=shared,
            timeout=timeout,
            blocking=blocking,
            ttl=ttl,
            operation=operation,
            reentrant=reentrant,
        )

    def slots(
        self,
        name: str,
        count: int,
        *,
        timeout: Optional[float] = None,
        blocking: bool = True,
        ttl: Optional[float] = None,
        operation: Optional[str] = None,
    ) -> Lock:
        """One of so many slots; see `tenure.slots`."""
        return make_slots(
            lambda: self._native,
            name,
            count,
            timeout=timeout,
            blocking=blocking,
            ttl=ttl,
            operation=operation,
        )

    def paths(
        self,
        *globs: str,
        shared: bool = False,
        timeout: Optional[float] = None,
        blocking: bool = True,
        ttl: Optional[float] = None,
        operation: Optional[str] = None,
    ) -> Lock:
        """The files of these globs, all or nothing; see `tenure.paths`."""
        return make_paths(
            lambda: self._native,
            *globs,
            shared=shared,
            timeout=timeout,
            blocking=blocking,
            ttl=ttl,
            operation=operation,
        )

    def locked(
        self,
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
        """A decorator that holds a lock while a function runs; see `tenure.locked`."""
        return locked(
            lambda: self,
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
        self,
        path: _files.Path,
        *,
        default: Any = None,
        timeout: Optional[float] = None,
        ttl: Optional[float] = None,
        indent: Optional[int] = 2,
        backup: Optional[str] = None,
        operation: Optional[str] = None,
    ) -> _files.JsonUpdate:
        """Changes a file of JSON under a lock of this store; see `tenure.update_json`."""
        return _files.JsonUpdate(
            lambda: self._native,
            path,
            default=default,
            timeout=timeout,
            ttl=ttl,
            indent=indent,
            backup=backup,
            operation=operation,
        )

    def append_line(
        self,
        path: _files.Path,
        line: Any,
        *,
        timeout: Optional[float] = None,
        sync: bool = False,
    ) -> None:
        """Appends one whole line to a file; see `tenure.append_line`."""
        only = self._native.only_resource
        if only is None:
            _files.append_line(path, line, timeout=timeout, sync=sync)
            return
        with self.lock(only, timeout=timeout, operation="append", reentrant=True):
            _files.append_line(path, line, timeout=timeout, sync=sync)

    def tasks(self) -> Tasks:
        """The tasks of this store; see `tenure.Tasks`."""
        return Tasks(lambda: self._native)

    def status(self) -> List[Dict[str, Any]]:
        """All that is held now, with holder, operation, token and the time left."""
        seen = json.loads(_greenlets.look(self._native))
        return [hold for hold in seen["holds"] if not hold["is_stale"]]

    def verify(self, name: str, token: int) -> bool:
        """Whether this token holds this resource now: what a program that is written to can ask."""
        return _greenlets.verify(self._native, name, token)

    def __repr__(self) -> str:
        return f"<tenure.Store {self.url} as {self.label}>"


def make_lock(
    store: Callable[[], _native.Store],
    name: str,
    *,
    shared: bool,
    timeout: Optional[float],
    blocking: bool,
    ttl: Optional[float],
    operation: Optional[str],
    reentrant: bool,
) -> Lock:
    """A lock of the store that is found when it is taken; see `tenure.lock`."""
    mode = _request.SHARED if shared else _request.EXCLUSIVE
    wanted = _request.make([name], slots=mode, operation=operation, ttl=ttl)
    return Lock(store, wanted, blocking=blocking, timeout=timeout, reentrant=reentrant)


def make_slots(
    store: Callable[[], _native.Store],
    name: str,
    count: int,
    *,
    timeout: Optional[float],
    blocking: bool,
    ttl: Optional[float],
    operation: Optional[str],
) -> Lock:
    """One of so many slots; see `tenure.slots`."""
    wanted = _request.make([name], slots=slot_count(count), operation=operation, ttl=ttl)
    return Lock(store, wanted, blocking=blocking, timeout=timeout)


def make_paths(
    store: Callable[[], _native.Store],
    *globs: str,
    shared: bool,
    timeout: Optional[float],
    blocking: bool,
    ttl: Optional[float],
    operation: Optional[str],
) -> Lock:
    """The files of these globs, all or nothing; see `tenure.paths`."""
    mode = _request.SHARED if shared else _request.EXCLUSIVE
    wanted = _request.make(globs, are_paths=True, slots=mode, operation=operation, ttl=ttl)
    return Lock(store, wanted, blocking=blocking, timeout=timeout)


#: The one that the program chose, and those that were found.
_chosen: Optional[Store] = None
_default: Optional[Store] = None
_by_folder: Dict[str, Store] = {}
#: Whether the files of a folder have a single lock, by the folder and by what the environment chooses.
_single_locks: Dict[Tuple[str, Optional[str]], bool] = {}
# Forked processes make their own: the copied one may be locked by a thread that is not there.
_opening = threading.RLock()


def _forked() -> None:
    global _opening
    _opening = threading.RLock()


os.register_at_fork(after_in_child=_forked)


def open(
    url: Optional[str] = None,
    *,
    label: Optional[str] = None,
    folder: Optional[_files.Path] = None,
) -> Store:
    """Opens the store that the URL names, or the one that the command would use in a folder."""
    path = None if folder is None else os.fspath(folder)
    return Store(_greenlets.open_store(url, label, path))


def default() -> Store:
    """The store that the command would use: found when it is first needed, in the folder of then."""
    global _default
    store = _chosen or _default
    if store is None:
        with _opening:
            if _default is None:
                _default = open()
            store = _default
    return store


def use(store: Optional[Store]) -> Optional[Store]:
    """Makes this the default store; returns the one chosen before. `None`: it is found again."""
    global _chosen, _default
    before, _chosen, _default = _chosen, store, None
    _by_folder.clear()
    _single_locks.clear()
    return before


def native(store: Optional[Store]) -> _native.Store:
    """The native part of this store, or of the default one."""
    return (default() if store is None else store)._native


def of_file(path: _files.Path) -> Store:
    """The store that the command would use for a file: that of its folder, unless one was chosen."""
    if _chosen is not None:
        return _chosen
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise FileError(f"the folder of {os.fspath(path)} does not exist")
    with _opening:
        if folder not in _by_folder:
            _by_folder[folder] = open(folder=folder)
        return _by_folder[folder]


def of_file_if_any(path: _files.Path) -> Optional[_native.Store]:
    """The store for a file; `None` where it would be in a home that cannot be used."""
    try:
        return of_file(path)._native
    except NoHome:
        return None


def append_line(path: _files.Path, line: Any, *, timeout: Optional[float], sync: bool) -> None:
    """Appends a line; under the single lock of the folder, if the store that was chosen has one."""
    if _chosen is not None or _has_single_lock(path):
        of_file(path).append_line(path, line, timeout=timeout, sync=sync)
    else:
        _files.append_line(path, line, timeout=timeout, sync=sync)


def _has_single_lock(path: _files.Path) -> bool:
    """Whether the store that the command would use for a file has one lock for all changes. Opens no store."""
    folder = os.path.dirname(os.path.realpath(path))
    place = folder, os.environ.get("TENURE_STORE")
    found = _single_locks.get(place)
    if found is None:
        try:
            found = os.path.isdir(folder) and _native.has_single_lock(folder)
        except NoHome:
            found = False
        _single_locks[place] = found
    return found


def locked(
    store: Callable[[], Store],
    name: str,
    *,
    on_busy: str,
    operation: Optional[str],
    **how: Any,
) -> Callable[[F], F]:
    """A decorator whose store is found when the function is called."""

    def decorator(function: F) -> F:
        what = operation or getattr(function, "__name__", None)
        own = decorate(lambda: store().lock(name, operation=what, **how), on_busy)
        return own(function)

    return decorator
