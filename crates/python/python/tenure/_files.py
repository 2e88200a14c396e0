"""Files that many processes change."""

from __future__ import annotations

import copy
import json
import os
from typing import Any, Callable, Optional, Type, Union

from . import _native, _own_holds
from .errors import Busy, FileError, Timeout, busy

Path = Union[str, "os.PathLike[str]"]


class JsonUpdate(_native.ExitsAlways):
    """Holds a file while its content is changed; see `tenure.update_json`."""

    def __init__(
        self,
        store: Callable[[], _native.Store],
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
        self._update: Optional[_native.FileUpdate] = None
        self._data: Any = None
        #: Whether replacing the file was begun: after Ctrl-C it is not done once more.
        self._is_leaving = False

    def __enter__(self) -> Any:
        operation = self._operation or f"update {os.path.basename(self._path)}"
        keeps = _own_holds.kept_by_thread() if self._timeout is None else []
        answer = _native.begin_update(
            self._store(), self._path, self._timeout, self._ttl, operation, keeps
        )
        if isinstance(answer, str):
            raise busy(Busy if self._timeout == 0 else Timeout, answer)
        self._update, self._is_leaving = answer, False
        content = answer.content
        try:
            if content is None or not content.strip():
                self._data = {} if self._default is None else copy.deepcopy(self._default)
            else:
                self._data = json.loads(content)
        except ValueError as error:
            answer.abort()
            raise FileError(f"{self._path} is not JSON: {error}", resource=self._path) from error
        return self._data

    def _count(self) -> int:
        """Whether the file is held; see `ExitsAlways`."""
        return 0 if self._update is None else 1

    def _exit(self, kind: Optional[Type[BaseException]], count: int) -> None:
        """Replaces the file, unless the block raised or this was begun; see `ExitsAlways`."""
        update = self._update
        if update is None:
            if count:
                return
            raise RuntimeError("the file is not held")
        try:
            if kind is None and not self._is_leaving:
                self._is_leaving = True
                text = json.dumps(self._data, indent=self._indent, ensure_ascii=False) + "\n"
                update.commit(text.encode(), self._backup)
        finally:
            # Does nothing after a commit.
            update.abort()
            self._update = None

    def __repr__(self) -> str:
        return f"<tenure.update_json {self._path!r}>"


def append_line(path: Path, line: Any, *, timeout: Optional[float], sync: bool) -> None:
    """Appends one whole line: a text as it is, anything else as JSON."""
    text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
    if "\n" in text or "\r" in text:
        raise ValueError("a line must not contain a line break")
    _native.append_lines(os.fspath(path), (text + "\n").encode(), timeout, sync)
