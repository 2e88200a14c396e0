"""What runs only after it was called: a lock that is held for the call holds nothing then."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Callable

_LATER = "runs after it was called: hold the lock inside it"


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether it makes coroutines; also of an object that can be called like a function."""
    return _is(inspect.iscoroutinefunction, function)


def refuse_generator(function: Callable[..., Any]) -> None:
    """Refuses a function that makes generators."""
    if _is(inspect.isgeneratorfunction, function) or _is(inspect.isasyncgenfunction, function):
        raise TypeError(f"a generator {_LATER}")


def refuse_later(result: Any) -> None:
    """Refuses what a function returned if nothing of it has run yet."""
    if inspect.iscoroutine(result):
        # Python would warn that nothing awaits it.
        result.close()
        raise TypeError(f"a coroutine {_LATER}, or use tenure.aio.locked")
    if isinstance(result, _CONTEXT_MANAGERS):
        raise TypeError(f"a context manager made of a generator {_LATER}")
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError(f"a generator {_LATER}")


#: What `contextlib.contextmanager` and its like for asyncio make.
_CONTEXT_MANAGERS = (contextlib._GeneratorContextManager, contextlib._AsyncGeneratorContextManager)


def _is(kind: Callable[[Any], bool], function: Callable[..., Any]) -> bool:
    return kind(function) or kind(getattr(type(function), "__call__", None))
