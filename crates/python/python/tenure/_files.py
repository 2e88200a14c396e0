"""Files that many processes change."""

from __future__ import annotations

import json
import os
from types import TracebackType
from typing import Any, Callable, Optional, Type, Union

from . import _native
from .errors import Busy, FileError, Timeout, busy

Path = Union[str, "os.PathLike[str]"]


class JsonUpdate:
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

    def __enter__(self) -> Any:
        operation = self._operation or f"update {os.path.basename(self._path)}"
        answer = _native.begin_update(
            self._store(), self._path, self._timeout, self._ttl, operation
        )
        if isinstance(answer, str):
            raise busy(Busy if self._timeout == 0 else Timeout, answer)
        self._update = answer
        content = answer.content
        try:
            if content is None or not content.strip():
                self._data = {} if self._default is None else self._default
            else:
                self._data = json.loads(content)
        except ValueError as error:
            answer.abort()
            raise FileError(f"{self._path} is not JSON: {error}", resource=self._path) from error
        return self._data

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        update, self._update = self._update, None
        if update is None:
            raise RuntimeError("the file is not held")
        if kind is not None:
            update.abort()
            return
        try:
            text = json.dumps(self._data, indent=self._indent, ensure_ascii=False) + "\n"
        except BaseException:
            update.abort()
            raise
        update.commit(text.encode(), self._backup)

    def __repr__(self) -> str:
        return f"<tenure.update_json {self._path!r}>"


def append_line(
    path: Path, line: Any, *, timeout: Optional[float] = None, sync: bool = False
) -> None:
    """Appends one whole line: a text as it is, anything else as JSON."""
    text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
    if "\n" in text or "\r" in text:
        raise ValueError("a line must not contain a line break")
    _native.append_lines(os.fspath(path), (text + "\n").encode(), timeout, sync)
