"""Files that many processes change."""

from __future__ import annotations

import copy
import json
import os
import time
from typing import TYPE_CHECKING, Any, Callable, Optional, Tuple, Union

from . import _callers, _greenlets, _native, _own_holds, _request
from ._held import Held
from .errors import Busy, FileError, TenureError, Timeout, busy

if TYPE_CHECKING:
    from ._kernel_locks import FileExclusion

Path = Union[str, "os.PathLike[str]"]


class JsonUpdate(_native.ExitsAlways):
    """Holds a file while its content is changed; see `tenure.update_json`."""

    def __init__(
        self,
        store: Callable[[], Optional[_native.Store]],
        path: Path,
        *,
        default: Any,
        timeout: Optional[float],
        ttl: Optional[float],
        indent: Optional[int],
        backup: Optional[str],
        operation: Optional[str],
    ) -> None:
        self._store = store
        self._path = os.fspath(path)
        self._default = default
        self._timeout = timeout
        self._ttl = ttl
        self._indent = indent
        self._backup = backup
        self._operation = operation
        #: The hold of the file, and by whom it was taken.
        self._hold: Optional[Tuple[Held, object]] = None
        #: What excludes other processes where there is no store.
        self._exclusion: Optional[FileExclusion] = None
        self._update: Optional[_native.FileUpdate] = None
        self._data: Any = None
        #: Whether replacing the file was begun: after Ctrl-C it is not done once more.
        self._is_leaving = False

    def __enter__(self) -> Any:
        # A file that cannot be replaced is refused before waiting for it.
        path = _native.replaceable_file(self._path)
        self._take(path, ends_with_block=not _callers.is_generator(1))
        try:
            self._update, self._is_leaving = _native.FileUpdate(path), False
            self._data = self._parsed(self._update.content)
        except BaseException:
            self._give_back()
            raise
        return self._data

    def _take(self, path: str, *, ends_with_block: bool) -> None:
        """Holds the file, waiting for it."""
        begun, limit = time.monotonic(), _request.patience(True, self._timeout)
        operation = self._operation or f"update {os.path.basename(self._path)}"
        store, exclusion = self._store(), None
        if store is None:
            # Few programs need it.
            from . import _kernel_locks

            store, exclusion = _kernel_locks.store(), _kernel_locks.FileExclusion(path)
            wanted = _kernel_locks.wanted(path, operation, self._ttl)
        else:
            wanted = _wanted(store, path, operation, self._ttl)
        keeps = [] if limit == 0 else _own_holds.kept_by_thread()
        answer = None
        try:
            answer = _greenlets.hold(store, wanted, limit, keeps)
            if isinstance(answer, str):
                raise busy(Busy if limit == 0 else Timeout, answer)
            held = Held(answer)
            self._hold = held, held._take()
            _own_holds.add(store, wanted, held, ends_with_block=ends_with_block)
            if exclusion is not None:
                waited = time.monotonic() - begun
                if not exclusion.acquire(None if limit is None else max(limit - waited, 0.0)):
                    message = f"{self._path} is updated by another process"
                    waited = time.monotonic() - begun
                    kind = Busy if limit == 0 else Timeout
                    raise kind(message, resource=self._path, waited=waited)
                self._exclusion = exclusion
        except BaseException:
            # Ctrl-C just after it was taken.
            if exclusion is not None:
                exclusion.release()
            self._hold = None
            if answer is not None and not isinstance(answer, str):
                answer.release()
            raise

    def _parsed(self, content: Optional[bytes]) -> Any:
        if content is None or not content.strip():
            return {} if self._default is None else copy.deepcopy(self._default)
        try:
            return json.loads(content)
        except ValueError as error:
            raise FileError(f"{self._path} is not JSON: {error}", resource=self._path) from error

    def _give_back(self) -> None:
        """Gives back the file. Can be done again after Ctrl-C."""
        if self._exclusion is not None:
            self._exclusion.release()
            self._exclusion = None
        if self._hold is not None:
            held, taker = self._hold
            try:
                held._leave(taker)
            except TenureError:
                # The file is replaced, or left as it is; a lease that ended meanwhile changes nothing.
                pass
        self._hold = self._update = None

    def _count(self) -> int:
        """Whether the file is held; see `ExitsAlways`."""
        return 0 if self._hold is None else 1

    def _exit(self, error: Optional[BaseException], count: int) -> None:
        """Replaces the file, unless the block raised or this was begun; see `ExitsAlways`."""
        if self._hold is None or self._update is None:
            if count:
                return
            raise RuntimeError("the file is not held")
        try:
            if error is None and not self._is_leaving:
                self._is_leaving = True
                text = json.dumps(self._data, indent=self._indent, ensure_ascii=False) + "\n"
                held, _ = self._hold
                _greenlets.seal(
                    self._update, held._guard, text.encode(), self._backup
                ).replace()
        finally:
            self._give_back()

    def __repr__(self) -> str:
        return f"<tenure.update_json {self._path!r}>"


def _wanted(
    store: _native.Store, path: str, operation: str, ttl: Optional[float]
) -> _request.Wanted:
    """What to hold for a file: its path, or the single lock of the folder."""
    only = store.only_resource
    names, file = ([], path) if only is None else ([only], None)
    return _request.make(names, file=file, operation=operation, ttl=ttl)


def append_line(path: Path, line: Any, *, timeout: Optional[float], sync: bool) -> None:
    """Appends one whole line: a text as it is, anything else as JSON."""
    text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
    if "\n" in text or "\r" in text:
        raise ValueError("a line must not contain a line break")
    _greenlets.append_lines(os.fspath(path), (text + "\n").encode(), timeout, sync)
