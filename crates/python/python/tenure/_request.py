"""What a lock asks for, checked once."""

from __future__ import annotations

from typing import List, Optional, Sequence, TypedDict

#: Values of `slots` that are no number of slots.
EXCLUSIVE = 0
SHARED = -1


class Wanted(TypedDict):
    """What to hold, and how."""

    names: List[str]
    are_paths: bool
    #: A file to hold instead, by its path without links.
    file: Optional[str]
    slots: int
    operation: Optional[str]
    ttl: Optional[float]


def make(
    names: Sequence[str],
    *,
    are_paths: bool = False,
    file: Optional[str] = None,
    slots: int = EXCLUSIVE,
    operation: Optional[str] = None,
    ttl: Optional[float] = None,
) -> Wanted:
    """The request as the native part takes it."""
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a name is a text, not {type(name).__name__}")
    return {
        "names": list(names),
        "are_paths": are_paths,
        "file": file,
        "slots": slots,
        "operation": operation,
        "ttl": None if ttl is None else float(ttl),
    }


def patience(blocking: bool, timeout: Optional[float]) -> Optional[float]:
    """How long to wait: for ever without a timeout; not at all if not blocking."""
    if not blocking:
        return 0.0
    # As with `threading.Lock`, -1 is the same as no limit.
    if timeout is None or timeout == -1:
        return None
    return float(timeout)


def shown(wanted: Wanted) -> str:
    """The names for messages and `repr`."""
    return ", ".join(wanted["names"])
