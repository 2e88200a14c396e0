"""The exceptions of tenure. All are a `TenureError`, and all can be pickled."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Type

__all__ = [
    "Busy",
    "Deadlock",
    "FileChanged",
    "FileError",
    "InvalidRequest",
    "Lost",
    "NoHome",
    "NoSuchTask",
    "StoreError",
    "StoreGone",
    "StoreUnavailable",
    "TaskError",
    "TenureError",
    "Timeout",
    "UnknownOutcome",
]


class TenureError(Exception):
    """Something was not done. `hint` says what to do about it, where that is known."""

    hint: Optional[str] = None
    #: What it is about, such as "deploy" or "path:src/**".
    resource: Optional[str] = None
    #: The label of the holder in the way, or of the new holder.
    holder: Optional[str] = None
    #: What the holder holds it for, in its words.
    operation: Optional[str] = None
    #: In how many seconds the holder's lease ends, unless it is renewed.
    expires_in: Optional[float] = None
    #: The same as a time of day, in seconds since 1970.
    expires_at: Optional[float] = None
    #: All holders in the way, with the fields of `Lock.status()["holders"]`.
    holders: List[Dict[str, Any]] = []
    #: For how many seconds it was waited.
    waited: float = 0.0

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message)
        self.__dict__.update(details)

    def __str__(self) -> str:
        message = str(self.args[0]) if self.args else ""
        return f"{message}. {self.hint}" if self.hint else message

    def __reduce__(self) -> Any:
        return _restore, (type(self), self.args, self.__dict__.copy())


def _restore(kind: Type[TenureError], args: Any, details: Dict[str, Any]) -> TenureError:
    error = kind(*args)
    error.__dict__.update(details)
    return error


class Timeout(TenureError, TimeoutError):
    """It did not become free in time."""


class Busy(Timeout):
    """It is not free, and the caller did not wait."""


class Lost(TenureError):
    """It is not held any more: the lease lapsed, or an operator broke it. Stop writing."""


class Deadlock(TenureError, RuntimeError):
    """The wait would never end: the holder waits for the caller."""


class InvalidRequest(TenureError, ValueError):
    """The request makes no sense, such as one with a lease of no length."""


class TaskError(TenureError):
    """The task cannot be changed like this now."""


class NoSuchTask(TaskError, LookupError):
    """There is no such task, or the text means more than one."""


class StoreError(TenureError):
    """The store failed."""


class StoreUnavailable(StoreError):
    """The store cannot be reached or is too busy. Nothing was written; trying again may help."""


class NoHome(StoreUnavailable):
    """The store would be in the user's home, which is missing or cannot be written to."""


class StoreGone(StoreError):
    """The store's file was removed or replaced. What was held in it is lost."""


class UnknownOutcome(StoreError):
    """It is not known whether the change was made: look before trying again."""


class FileError(TenureError, OSError):
    """A file was not changed."""

    def __init__(self, message: str = "", **details: Any) -> None:
        OSError.__init__(self, message)
        self.__dict__.update(details)


class FileChanged(FileError):
    """A program that takes no lock changed the file meanwhile. It was left as it is."""


def make(kind: str, message: str, hint: Optional[str], details: str) -> TenureError:
    """Makes the exception for an error of the native part."""
    known = json.loads(details) or {}
    known = {name: value for name, value in known.items() if value is not None}
    if hint is not None:
        known["hint"] = hint
    error: TenureError = globals()[kind](message, **known)
    return error


def busy(kind: Type[Timeout], answer: str) -> Timeout:
    """Makes the exception for what is held by others, from the native part's JSON."""
    known = json.loads(answer)
    details: Dict[str, Any] = {"holders": known["holders"], "waited": known["waited"]}
    if known["holders"]:
        first = known["holders"][0]
        for name in ("resource", "holder", "operation", "expires_in", "expires_at"):
            if first[name] is not None:
                details[name] = first[name]
    details["hint"] = "Wait longer, or run `tenure why RESOURCE` to see what would free it."
    return kind(known["message"], **details)
