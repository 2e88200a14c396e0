"""What is held: the token, and whether it still counts."""

from __future__ import annotations

import os
from typing import List, NamedTuple, Optional, Tuple

from . import _callers, _greenlets, _native
from .errors import Lost


class LostEvent:
    """Tells whether a hold was lost, with the names of `threading.Event`."""

    __slots__ = ("_guard",)

    def __init__(self, guard: _native.Guard) -> None:
        self._guard = guard

    def is_set(self) -> bool:
        """Whether it may not be trusted any more. Asks no store: time and the last renewal decide."""
        return not self._guard.is_held()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it is lost or released, and says whether it is."""
        return _greenlets.wait_lost(self._guard, timeout)

    def __repr__(self) -> str:
        return f"<lost: {self.is_set()}>"


class Takeover(NamedTuple):
    """A hold that ended so that another could begin."""

    resource: str
    #: The label of its holder.
    holder: str
    #: Such as "process 12345 on HOST is dead" and "its lease ended 4s ago".
    reason: str


class Held:
    """A hold. It is renewed in the background until it is released, or until its process ends.

    In a process forked from its owner the copy counts as lost, and releases nothing.
    """

    __slots__ = (
        "__weakref__",
        "_caller",
        "_guard",
        "_is_handed_over",
        "_process",
        "_release_failed",
        "_takers",
        "_was_lost",
    )

    def __init__(self, guard: _native.Guard) -> None:
        self._guard = guard
        self._process = os.getpid()
        self._caller = _callers.current()
        #: Whether another thread than the one that took it has used it.
        self._is_handed_over = False
        #: By whom it was taken: by several, if a lock is reentrant.
        self._takers: List[object] = []
        #: Whether it had been lost when it was given back.
        self._was_lost = False
        #: Whether the store could not be told that it is given back.
        self._release_failed = False

    @property
    def token(self) -> int:
        """The fencing token, which rises with each hold: let what you write to refuse a lower one."""
        return self._guard.token

    @property
    def lost(self) -> LostEvent:
        """`lost.is_set()` says whether it was lost; `lost.wait(seconds)` waits for it."""
        self._notice_caller()
        return LostEvent(self._guard)

    @property
    def index(self) -> int:
        """The slot that is held, from 0."""
        slots = self._guard.slots
        if not slots:
            raise AttributeError("only a hold of slots has an index")
        return slots[0]

    @property
    def resources(self) -> Tuple[str, ...]:
        """What is held."""
        return tuple(self._guard.resources)

    @property
    def waited(self) -> float:
        """For how many seconds it was waited."""
        return self._guard.waited

    @property
    def took_over(self) -> List[Takeover]:
        """The holds that ended for this one, since their holders had died or their leases lapsed."""
        return [Takeover(*over) for over in self._guard.took_over]

    @property
    def trusted_for(self) -> float:
        """For how many seconds it may be trusted without a further renewal."""
        return self._guard.trusted_for()

    def check(self) -> None:
        """Raises `Lost` if it may not be trusted any more. Costs no access to the store."""
        self._notice_caller()
        if not self._guard.is_held():
            raise self._lost()

    def confirm(self) -> None:
        """Renews now, and raises `Lost` if the store says that it is not held any more."""
        self._notice_caller()
        if not _greenlets.confirm(self._guard):
            raise self._lost()

    def release(self) -> None:
        """Gives it back. Raises `Lost` if it was lost before; does nothing if it was given back."""
        self._notice_caller()
        self._leave(self._takers[-1] if self._takers else None)

    def _take(self) -> object:
        """Stands for one who took it."""
        taker = object()
        self._takers.append(taker)
        return taker

    def _leave(self, taker: object) -> None:
        """Gives it back with the last who took it. Can be done again after Ctrl-C."""
        if not self._is_inherited() and not self._leaves_others(taker):
            try:
                was_held = _greenlets.release(self._guard)
            except Exception:
                # The guard is gone, and the store may not know of it.
                self._release_failed = True
                raise
            self._given_back(was_held)

    def _leaves_others(self, taker: object) -> bool:
        """Whether others who took it go on. Raises `Lost` if it was lost."""
        others = [other for other in self._takers if other is not taker]
        if others:
            self._takers = others
            self.check()
        return bool(others)

    def _given_back(self, was_held: Optional[bool]) -> None:
        """Raises `Lost` if it was lost before."""
        if was_held is False:
            self._was_lost = True
            raise self._lost()

    def has_ended(self) -> bool:
        """Whether it was released or lost, or belongs to the parent process."""
        return self._is_inherited() or not self._guard.is_held()

    def _notice_caller(self) -> None:
        if not self._is_handed_over and _callers.current() is not self._caller:
            self._is_handed_over = True

    def _kept(self) -> Optional[_native.Guard]:
        """What is held; `None` if it has ended, or is used by another thread than the one that took it."""
        return None if self._is_handed_over or self.has_ended() else self._guard

    def _is_inherited(self) -> bool:
        return self._process != os.getpid()

    def _lost(self) -> Lost:
        name = ", ".join(self._guard.resources)
        if self._is_inherited():
            return Lost(f"{name} is held by the parent process, not by this one", resource=name)
        if self._release_failed:
            hint = "Its lease is not renewed any more and ends by itself."
            return Lost(f"{name} could not be given back", resource=name, hint=hint)
        if self._guard.is_released() and not self._was_lost:
            return Lost(f"{name} was released", resource=name)
        hint = "It lapsed, or an operator broke it: stop writing. `tenure events` shows which."
        return Lost(f"{name} is not held any more", resource=name, hint=hint)

    def __repr__(self) -> str:
        if self._is_inherited():
            state = "of the parent process"
        elif self._release_failed:
            state = "not given back"
        elif self._guard.is_released() and not self._was_lost:
            state = "released"
        else:
            state = "held" if self._guard.is_held() else "lost"
        return f"<tenure.Held {', '.join(self._guard.resources)} token={self.token} {state}>"
