"""Warnings, shown at the line of the program that called tenure."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Optional

_PACKAGE = __name__.partition(".")[0]


def warn(message: str) -> None:
    """Warns of what the caller of this package does."""
    level = 1
    frame: Optional[FrameType] = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
        frame = frame.f_back
        level += 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)
