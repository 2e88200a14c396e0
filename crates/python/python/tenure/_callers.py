"""Who asks for a hold: a thread, or where gevent replaced threads a greenlet."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
import weakref
from inspect import CO_ASYNC_GENERATOR, CO_GENERATOR
from typing import Any, List, Optional


class Caller:
    """A thread or greenlet. Its number becomes another's after its end; this object never does."""

    __slots__ = ("_life", "holds")

    def __init__(self, life: _Life) -> None:
        self._life = weakref.ref(life)
        #: What it holds. Only the thread itself changes the list.
        self.holds: List[Any] = []

    @property
    def has_ended(self) -> bool:
        """Whether the thread or greenlet has ended."""
        return self._life() is None


class _Life:
    """An object that only the data of a thread refers to, so that both end together."""

    def __init__(self) -> None:
        self.caller = Caller(self)


_local: Any = threading.local()

class _Call:
    """A call that a pool of threads makes."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller


#: The call that runs now, as far as its pool gives each call a context of its own, as `asyncio.to_thread` does.
_call: "contextvars.ContextVar[Optional[_Call]]" = contextvars.ContextVar(
    "tenure_call", default=None
)


def current() -> Caller:
    """The thread or greenlet that runs now."""
    global _local
    if type(_local) is not threading.local:
        # gevent replaced it since.
        _local = threading.local()
    life: Optional[_Life] = getattr(_local, "life", None)
    if life is None:
        life = _local.life = _Life()
    return life.caller


def current_task() -> Any:
    """The asyncio task that runs in this thread now."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def is_in_event_loop() -> bool:
    """Whether this thread runs an event loop now: then no other call runs in it until this one returns."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def current_call() -> object:
    """The call that this thread runs for its pool; the thread's only one if it belongs to none."""
    call, caller = _call.get(), current()
    # A context begins with what the one had from which it was copied, in another thread.
    if call is None or call.caller is not caller:
        call = _Call(caller)
        _call.set(call)
    return call


def is_generator(depth: int) -> bool:
    """Whether a function so many calls outside of the caller is a generator: it may go on in another thread."""
    flags = sys._getframe(depth + 1).f_code.co_flags
    return bool(flags & (CO_GENERATOR | CO_ASYNC_GENERATOR))
