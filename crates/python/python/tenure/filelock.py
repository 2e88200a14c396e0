"""Replaces the package `filelock`: `from tenure.filelock import FileLock`.

Names and behaviour are those of filelock 4. A `FileLock` holds two locks: a lock of the store, by which
waiters are served in order, are woken at once, and can be seen by `tenure locks`; and the kernel's lock
on the file (`flock`), which programs that still use filelock hold, so that they are excluded too.

Locks whose file is their state (`SoftFileLock` and its kin) are not here: use `tenure.lock`.
"""

from __future__ import annotations

import contextlib
import decimal
import errno
import fcntl
import functools
import inspect
import logging
import math
import numbers
import os
import threading
import time
import warnings
import weakref
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    List,
    Optional,
    Tuple,
    TypeVar,
    Union,
    cast,
)

from . import _callables, _greenlets, _native, _request, _store
from .errors import StoreUnavailable

if TYPE_CHECKING:
    from ._async_filelock import (
        AsyncAcquireReturnProxy,
        AsyncFileLock,
        AsyncUnixFileLock,
        BaseAsyncFileLock,
    )

__all__ = [
    "AcquireReturnProxy",
    "AsyncAcquireReturnProxy",
    "AsyncFileLock",
    "AsyncUnixFileLock",
    "BaseAsyncFileLock",
    "BaseFileLock",
    "FileLock",
    "Timeout",
    "UnixFileLock",
]

_LOGGER = logging.getLogger("filelock")

#: What filelock writes for "no mode was given": the umask decides then.
_UNSET_FILE_MODE = -1

#: What the kernel says where another holds the lock.
_CONTENTION = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK}

F = TypeVar("F", bound=Callable[..., Any])
L = TypeVar("L", bound="BaseFileLock")


class Timeout(TimeoutError):
    """The lock was not free in time."""

    def __init__(self, lock_file: str, holder: Optional[str] = None) -> None:
        super().__init__()
        self._lock_file = lock_file
        self._holder = holder

    def __reduce__(self) -> Any:
        return self.__class__, (self._lock_file,), self.__dict__

    def __str__(self) -> str:
        message = f"The file lock '{self._lock_file}' could not be acquired."
        if self._holder is None:
            return message
        return f"{message} It is held by {self._holder}, which this host cannot probe."

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.lock_file!r})"

    @property
    def lock_file(self) -> str:
        """The path of the lock file."""
        return self._lock_file


class AcquireReturnProxy(_native.ExitsAlways, Generic[L]):
    """What `acquire` returns: leaving its block releases the lock."""

    def __init__(self, lock: L) -> None:
        self.lock = lock

    def __enter__(self) -> L:
        return self.lock

    def _count(self) -> int:
        return self.lock._count()

    def _exit(self, error: Optional[BaseException], count: int) -> None:
        self.lock._exit(error, count)


class _Hold:
    """What one thread, or all of them, has of a lock."""

    def __init__(self) -> None:
        self.counter = 0
        self.descriptor: Optional[int] = None
        self.lease: Optional[_native.Guard] = None
        self.path: Optional[str] = None
        self.scope: Any = None
        self.thread = threading.current_thread()


class _Settings:
    """What can be set after construction."""

    def __init__(self, timeout: float, blocking: bool, poll_interval: float) -> None:
        self.timeout = timeout
        self.blocking = blocking
        self.poll_interval = poll_interval


class _ThreadSettings(_Settings, threading.local):
    """The same for each thread."""


#: Which object holds a path in a thread or task: a second one would wait for the first for ever.
_held_paths: Dict[Tuple[Any, str], "weakref.ref[BaseFileLock]"] = {}

#: All locks of this process, so that a forked one closes their files.
_all_locks: "weakref.WeakSet[BaseFileLock]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    """The files are the parent's: closed here, they stay locked there until the parent releases."""
    _held_paths.clear()
    for lock in list(_all_locks):
        for hold in lock._all_holds():
            if hold.descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(hold.descriptor)
            hold.descriptor = hold.lease = hold.path = None
            hold.counter = 0
        lock._gate = threading.RLock()


os.register_at_fork(after_in_child=_after_fork_in_child)


def _seconds(name: str, value: Any) -> float:
    is_number = isinstance(value, (numbers.Real, decimal.Decimal)) and not isinstance(value, bool)
    if not is_number:
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    if isinstance(value, decimal.Decimal) and value.is_nan():
        return math.nan
    try:
        seconds = float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large to be a number of seconds: {value!r}") from None
    # What is too small for a float must not become "not at all": less than nothing is for ever.
    return -1.0 if seconds == 0 and value < 0 else seconds


def _poll_interval(value: Any) -> float:
    seconds = _seconds("poll_interval", value)
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"poll_interval must be finite and non-negative, not {value!r}")
    if seconds > threading.TIMEOUT_MAX:
        maximum = threading.TIMEOUT_MAX
        raise ValueError(
            f"poll_interval must not exceed threading.TIMEOUT_MAX ({maximum}), got {value!r}"
        )
    return seconds


def _blocking(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"blocking must be a bool, not {type(value).__name__}")
    return value


def _canonical(path: str) -> str:
    """The path without links in its folder; the last part may not be a link."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


class _Singletons(type):
    """Gives the same object for the same file where `is_singleton` is set."""

    _instances: "weakref.WeakValueDictionary[str, BaseFileLock]"
    _instances_lock: Any

    def __call__(cls, lock_file: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs = cls._accepted(kwargs)
        if not kwargs.get("is_singleton", False):
            return super().__call__(lock_file, *args, **kwargs)
        with cls._instances_lock:
            key = _canonical(os.fspath(lock_file))
            known = cls._instances.get(key)
            if known is None or known._is_elsewhere(key):
                known = super().__call__(lock_file, *args, **kwargs)
                cls._instances[key] = known
            else:
                known._refuse_other_arguments(args, kwargs)
            return known


    def _accepted(cls, kwargs: Dict[str, Any]) -> Dict[str, Any]:
        """The arguments without those that a subclass does not take and that say nothing."""
        parameters = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
        if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
            return kwargs
        unknown = [name for name in kwargs if name not in parameters]
        usual = _all_options(cls)
        refused = sorted(n for n in unknown if n not in usual or kwargs[n] != usual[n])
        if refused:
            names = ", ".join(refused)
            raise TypeError(f"{cls.__name__} does not support non-default lock options: {names}")
        return {name: value for name, value in kwargs.items() if name not in unknown}


class BaseFileLock(_native.ExitsAlways, contextlib.ContextDecorator, metaclass=_Singletons):
    """A lock on a file, re-entrant for each object."""

    _instances: "weakref.WeakValueDictionary[str, BaseFileLock]"
    _instances_lock: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._instances = weakref.WeakValueDictionary()
        cls._instances_lock = threading.RLock()

    def __init__(
        self,
        lock_file: Union[str, "os.PathLike[str]"],
        timeout: float = -1,
        mode: int = _UNSET_FILE_MODE,
        thread_local: bool = True,
        *,
        blocking: bool = True,
        is_singleton: bool = False,
        poll_interval: float = 0.05,
        lifetime: Optional[float] = None,
        context_error_policy: str = "chain",
        close_error_policy: str = "default",
        fallback_to_soft: bool = True,
        preserve_lock_file: bool = False,
        on_acquired: Optional[Callable[[int], None]] = None,
    ) -> None:
        if context_error_policy not in ("chain", "group"):
            words = f"'chain' or 'group', got {context_error_policy!r}"
            raise ValueError(f"context_error_policy must be {words}")
        if close_error_policy not in ("default", "raise", "suppress"):
            words = f"'default', 'raise', or 'suppress', got {close_error_policy!r}"
            raise ValueError(f"close_error_policy must be {words}")
        if lifetime is not None:
            message = "lifetime is ignored: a native OS lock cannot be broken safely by file age"
            warnings.warn(message, UserWarning, stacklevel=3)
        self._lock_file = os.fspath(lock_file)
        self._mode = mode
        self._is_thread_local = thread_local
        self._is_singleton = is_singleton
        settings = (_seconds("timeout", timeout), _blocking(blocking), _poll_interval(poll_interval))
        self._settings: _Settings = (
            _ThreadSettings(*settings) if thread_local else _Settings(*settings)
        )
        self._context_error_policy = context_error_policy
        self._close_error_policy = close_error_policy
        self._fallback_to_soft = fallback_to_soft
        self._preserve_lock_file = preserve_lock_file
        self._on_acquired = on_acquired
        self._process = os.getpid()
        # Serves threads that share one hold, one after the other.
        self._gate = threading.RLock()
        self._shared_hold = _Hold()
        self._thread_holds: Dict[int, _Hold] = {}
        _all_locks.add(self)

    # What it is.

    @property
    def lock_file(self) -> str:
        """The path of the lock file."""
        return self._lock_file

    @property
    def is_locked(self) -> bool:
        """Whether this object holds the lock: in this thread, if each thread has its own hold."""
        return self._hold().descriptor is not None

    @property
    def lock_counter(self) -> int:
        """How often it was acquired and not released."""
        return self._hold().counter

    @property
    def timeout(self) -> float:
        """How long `acquire` waits: for ever if negative."""
        return self._settings.timeout

    @timeout.setter
    def timeout(self, value: Any) -> None:
        if isinstance(value, (str, bytes, bytearray)):
            message = "setting timeout from a string is deprecated"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            value = float(value)
        self._settings.timeout = _seconds("timeout", value)

    @property
    def blocking(self) -> bool:
        """Whether `acquire` waits at all."""
        return self._settings.blocking

    @blocking.setter
    def blocking(self, value: bool) -> None:
        self._settings.blocking = _blocking(value)

    @property
    def poll_interval(self) -> float:
        """How often a lock that another program holds by `flock` alone is tried."""
        return self._settings.poll_interval

    @poll_interval.setter
    def poll_interval(self, value: float) -> None:
        self._settings.poll_interval = _poll_interval(value)

    @property
    def mode(self) -> int:
        """The permissions of a lock file that is made."""
        return 0o644 if self._mode == _UNSET_FILE_MODE else self._mode

    @property
    def has_explicit_mode(self) -> bool:
        """Whether a mode was given."""
        return self._mode != _UNSET_FILE_MODE

    @property
    def lifetime(self) -> Optional[float]:
        """Always `None`: the kernel's lock does not end with time."""
        return None

    @lifetime.setter
    def lifetime(self, value: Optional[float]) -> None:
        if value is not None:
            message = "lifetime is ignored: a native OS lock cannot be broken safely by file age"
            warnings.warn(message, UserWarning, stacklevel=2)

    @property
    def is_singleton(self) -> bool:
        """Whether all objects for this file are the same."""
        return self._is_singleton

    @property
    def context_error_policy(self) -> str:
        """What becomes of two errors, of a block and of the release after it."""
        return self._context_error_policy

    @property
    def close_error_policy(self) -> str:
        """What becomes of an error when the file is closed."""
        return self._close_error_policy

    @property
    def fallback_to_soft(self) -> bool:
        """Kept for compatibility; a file system without `flock` is refused."""
        return self._fallback_to_soft

    @property
    def preserve_lock_file(self) -> bool:
        """Kept for compatibility; the lock file always stays."""
        return self._preserve_lock_file

    @property
    def on_acquired(self) -> Optional[Callable[[int], None]]:
        """What is called with the descriptor when the lock was taken."""
        return self._on_acquired

    def is_thread_local(self) -> bool:
        """Whether each thread has its own hold."""
        return self._is_thread_local

    # Taking and giving back.

    def acquire(
        self: L,
        timeout: Optional[float] = None,
        poll_interval: Optional[float] = None,
        *,
        poll_intervall: Optional[float] = None,
        blocking: Optional[bool] = None,
        cancel_check: Optional[Callable[[], bool]] = None,
    ) -> AcquireReturnProxy[L]:
        """Takes the lock, or raises `Timeout`. Each further call counts one level."""
        if poll_intervall is not None:
            message = "use poll_interval instead of poll_intervall"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            poll_interval = poll_intervall
        wait = self._wait(timeout, poll_interval, blocking, cancel_check)
        # Made before, so that Ctrl-C does not come between taking the lock and returning.
        proxy = AcquireReturnProxy(self)
        self._acquire_within(wait)
        return proxy

    def _wait(
        self,
        timeout: Optional[float],
        poll_interval: Optional[float],
        blocking: Optional[bool],
        cancel_check: Optional[Callable[[], bool]],
    ) -> "_Wait":
        if self._process != os.getpid():
            name = type(self).__name__
            message = f"{name} on {self.lock_file} was inherited across fork; construct a new instance"
            raise RuntimeError(message)
        blocks = self.blocking if blocking is None else _blocking(blocking)
        interval = self.poll_interval if poll_interval is None else _poll_interval(poll_interval)
        seconds = self.timeout if timeout is None else _seconds("timeout", timeout)
        if blocks and math.isnan(seconds):
            raise ValueError("timeout must be a number of seconds, not nan")
        limit = seconds if blocks else 0.0
        return _Wait(self.lock_file, limit, blocks, interval, cancel_check, self._scope())

    def _acquire_within(self, wait: "_Wait") -> None:
        if self._is_thread_local:
            self._acquire_level(wait)
            return
        # One thread at a time takes or gives back what is shared.
        while not self._gate.acquire(timeout=wait.step()):
            wait.give_up_if_due()
        try:
            self._acquire_level(wait)
        finally:
            self._gate.release()

    def _acquire_level(self, wait: "_Wait") -> None:
        hold = self._hold()
        is_first = hold.descriptor is None
        try:
            if is_first:
                self._take(hold, wait)
            else:
                # A relative path in a folder that is gone is refused, also if it is held.
                os.path.abspath(self.lock_file)
            hold.counter += 1
        except BaseException:
            # Ctrl-C just after it was taken.
            if is_first and hold.descriptor is not None:
                self._give_back(hold)
            raise

    def _take(self, hold: _Hold, wait: "_Wait") -> None:
        path = _canonical(self.lock_file)
        if wait.is_endless:
            self._refuse_deadlock(path, wait.scope)
        hold.path = path
        try:
            self._acquire(hold, wait)
        except BaseException:
            hold.path = None
            raise
        hold.scope, hold.thread = wait.scope, threading.current_thread()
        _held_paths[(hold.scope, path)] = weakref.ref(self)
        if self._on_acquired is not None and hold.descriptor is not None:
            try:
                self._on_acquired(hold.descriptor)
            except BaseException:
                self._give_back(hold)
                raise

    def _refuse_deadlock(self, path: str, scope: Any) -> None:
        """Raises if another object of this thread or task holds the file: it would wait for ever."""
        other = _held_paths.get((scope, path))
        if other is not None and other() not in (None, self):
            kind = self._holder_words
            message = f"Deadlock: lock '{self.lock_file}' is already held by a different {kind}"
            raise RuntimeError(f"{message}. Use is_singleton=True to share one instance.")

    def _acquire(self, hold: _Hold, wait: "_Wait") -> None:
        raise NotImplementedError

    def _release(self, hold: _Hold) -> None:
        raise NotImplementedError

    def release(self, force: bool = False) -> None:
        """Gives one level back, or all with `force`. A lock that is not held is left alone."""
        if self._process != os.getpid():
            return
        with contextlib.nullcontext() if self._is_thread_local else self._gate:
            hold = self._hold()
            if hold.descriptor is not None:
                if hold.counter > 1 and not force:
                    hold.counter -= 1
                    return
                self._give_back(hold)
        if force and self._is_thread_local:
            self._release_holds_of_threads(lambda thread: not thread.is_alive())

    def _give_back(self, hold: _Hold) -> None:
        _LOGGER.debug("Attempting to release lock %s on %s", id(self), self.lock_file)
        try:
            self._release(hold)
        finally:
            if hold.descriptor is None:
                hold.counter = 0
                key = (hold.scope, hold.path or "")
                known = _held_paths.get(key)
                if known is not None and known() in (None, self):
                    del _held_paths[key]
                hold.path = None
        _LOGGER.debug("Lock %s released on %s", id(self), self.lock_file)

    def _release_holds_of_threads(self, which: Callable[[threading.Thread], bool]) -> None:
        for ident, hold in list(self._thread_holds.items()):
            if hold.descriptor is not None and which(hold.thread):
                self._give_back(hold)
            if not hold.thread.is_alive():
                self._thread_holds.pop(ident, None)

    # Blocks.

    def __call__(self, func: F) -> F:
        """Holds the lock while a function runs. A function that runs after the call is refused."""
        if _callables.is_coroutine_function(func):
            raise TypeError("a coroutine runs after it was called: hold the lock inside it")
        _callables.refuse_generator(func)

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                result = func(*args, **kwargs)
                _callables.refuse_later(result)
                return result

        return cast(F, wrapper)

    def __enter__(self: L) -> L:
        self.acquire()
        return self

    def _count(self) -> int:
        """How often this thread has it, or all threads; see `ExitsAlways`."""
        return self.lock_counter

    def _exit(self, error: Optional[BaseException], count: int) -> None:
        """Gives back the last level, unless that was done; see `ExitsAlways`."""
        if self.lock_counter >= count:
            self._release_in_context(error)

    def _release_in_context(self, error: Optional[BaseException]) -> Any:
        try:
            self.release()
        except BaseException as release_error:
            if error is None or self._context_error_policy == "chain":
                raise
            _raise_both(error, release_error)

    def __del__(self) -> None:
        if getattr(self, "_thread_holds", None) is None or self._process != os.getpid():
            return
        with contextlib.suppress(Exception):
            for hold in self._all_holds():
                if hold.descriptor is not None:
                    self._give_back(hold)

    # Details.

    _holder_words = "FileLock instance in this thread"

    def _scope(self) -> Any:
        return threading.get_ident()

    def _hold(self) -> _Hold:
        if not self._is_thread_local:
            return self._shared_hold
        ident = threading.get_ident()
        hold = self._thread_holds.get(ident)
        if hold is None or (hold.descriptor is None and not hold.thread.is_alive()):
            hold = self._thread_holds[ident] = _Hold()
        return hold

    def _all_holds(self) -> List[_Hold]:
        return [self._shared_hold, *list(self._thread_holds.values())]

    def _is_elsewhere(self, key: str) -> bool:
        """Whether a relative path means another file by now."""
        held = [hold.path for hold in self._all_holds() if hold.path is not None]
        return key not in held and _canonical(self.lock_file) != key

    def _refuse_other_arguments(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        names = ("timeout", "mode", "thread_local")
        given = {**dict(zip(names, args)), **kwargs}
        usual = _all_options(type(self))
        for name, now in self._arguments().items():
            asked = given.get(name, usual.get(name))
            if not _means_the_same(name, asked, now):
                message = "Singleton lock instances cannot be initialized with differing arguments"
                raise ValueError(f"{message}\n\t{name} (existing lock has {now}, got {asked})")

    def _arguments(self) -> Dict[str, Any]:
        """What it was made with, as far as two users of one object could disagree."""
        return {
            "timeout": self.timeout,
            "mode": self._mode,
            "thread_local": self._is_thread_local,
            "blocking": self.blocking,
            "poll_interval": self.poll_interval,
            "context_error_policy": self._context_error_policy,
            "close_error_policy": self._close_error_policy,
            "fallback_to_soft": self._fallback_to_soft,
            "preserve_lock_file": self._preserve_lock_file,
            "on_acquired": self._on_acquired,
        }


def _all_options(kind: type) -> Dict[str, Any]:
    """The same for a subclass, which may take fewer: its own values count first."""
    options: Dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, BaseFileLock) and "__init__" in vars(base):
            options.update(_options(base))
    return options


def _options(kind: type) -> Dict[str, Any]:
    """The arguments of a class that can be left out, with their usual values."""
    parameters = inspect.signature(kind.__init__).parameters.values()  # type: ignore[misc]
    optional = [one for one in parameters if one.default is not inspect.Parameter.empty]
    return {one.name: one.default for one in optional}


def _means_the_same(name: str, asked: Any, now: Any) -> bool:
    if name != "timeout":
        return bool(asked == now)
    asked, now = _seconds(name, asked), _seconds(name, now)
    both_nan = math.isnan(asked) and math.isnan(now)
    both_endless = all(limit < 0 or limit == math.inf for limit in (asked, now))
    return asked == now or both_nan or both_endless


class _Wait:
    """How long an `acquire` goes on."""

    def __init__(
        self,
        lock_file: str,
        timeout: float,
        blocks: bool,
        interval: float,
        cancel_check: Optional[Callable[[], bool]],
        scope: Any,
    ) -> None:
        self.lock_file = lock_file
        #: The thread or task that waits.
        self.scope = scope
        self.blocks = blocks
        self.interval = interval
        self.cancel_check = cancel_check
        self.is_endless = blocks and (timeout < 0 or timeout == math.inf)
        self.deadline = math.inf if self.is_endless else time.perf_counter() + timeout

    def left(self) -> Optional[float]:
        """How long to go on: `None` is for ever."""
        return None if self.is_endless else max(self.deadline - time.perf_counter(), 0.0)

    def step(self) -> float:
        """How long to wait before looking again."""
        left = self.left()
        if not self.blocks:
            return 0.0
        return self.interval if left is None else min(self.interval, left)

    def limit(self) -> Optional[float]:
        """How long to wait in one go: if there is something to ask meanwhile, only for a step."""
        return self.left() if self.cancel_check is None else self.step()

    def give_up_if_due(self) -> None:
        """Raises `Timeout` if it is to end."""
        if not self.blocks:
            _LOGGER.debug("Failed to immediately acquire lock on %s", self.lock_file)
            raise Timeout(self.lock_file)
        if self.cancel_check is not None and self.cancel_check():
            _LOGGER.debug("Cancellation requested for lock on %s", self.lock_file)
            raise Timeout(self.lock_file)
        left = self.left()
        if left is not None and left <= 0:
            _LOGGER.debug("Timeout on acquiring lock on %s", self.lock_file)
            raise Timeout(self.lock_file)


class UnixFileLock(BaseFileLock):
    """A lock of the store, and the kernel's lock on the file."""

    def _acquire(self, hold: _Hold, wait: _Wait) -> None:
        if not self.lock_file:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.lock_file)
        path = hold.path or self.lock_file
        while True:
            # First, so that a file that cannot be locked is refused before waiting for it.
            descriptor = self._open(path)
            if descriptor is not None:
                try:
                    if self._acquire_both(descriptor, path, hold, wait):
                        return
                except BaseException:
                    # Also if a signal handler raised just after both were taken.
                    lease = hold.lease
                    hold.descriptor = hold.lease = None
                    os.close(descriptor)
                    if lease is not None:
                        _greenlets.release(lease)
                    raise
                os.close(descriptor)
            wait.give_up_if_due()
            time.sleep(wait.step())

    def _acquire_both(self, descriptor: int, path: str, hold: _Hold, wait: _Wait) -> bool:
        _LOGGER.debug("Attempting to acquire lock %s on %s", id(self), self.lock_file)
        lease = self._acquire_lease(path, wait)
        try:
            while not _try_flock(descriptor):
                wait.give_up_if_due()
                pause = wait.step()
                message = "Lock %s not acquired on %s, waiting %s seconds ..."
                _LOGGER.debug(message, id(self), self.lock_file, pause)
                time.sleep(pause)
            if os.fstat(descriptor).st_nlink == 0:
                # It was removed meanwhile: other programs lock the file that is there now.
                if lease is not None:
                    _greenlets.release(lease)
                return False
        except BaseException:
            if lease is not None:
                _greenlets.release(lease)
            raise
        hold.descriptor, hold.lease = descriptor, lease
        _LOGGER.debug("Lock %s acquired on %s", id(self), self.lock_file)
        return True

    def _acquire_lease(self, path: str, wait: _Wait) -> Optional[_native.Guard]:
        """Waits in the queue of the store: served in order, and woken when its turn comes.

        `None` where no store can be made, as without a home: the kernel's lock excludes others all the
        same, in no order.
        """
        try:
            store = _store.of_file(path)
        except StoreUnavailable:
            return None
        wanted = _request.make([f"lock:filelock:{path}"], operation=f"FileLock {path}")
        while True:
            answer = _greenlets.hold(store._native, wanted, wait.limit(), None)
            if not isinstance(answer, str):
                return answer
            wait.give_up_if_due()

    def _open(self, path: str) -> Optional[int]:
        """Opens the lock file, and makes it if there is none. `None` if it is to be tried again."""
        mode = self.mode if self.has_explicit_mode else 0o666
        flags = os.O_RDWR | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0)
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            try:
                return os.open(path, flags, mode)
            except (FileNotFoundError, BlockingIOError):
                return None
        except FileNotFoundError:
            folder = os.path.dirname(path)
            if os.path.isdir(folder):
                return None
            os.makedirs(folder, exist_ok=True)
            return self._open(path)
        except PermissionError:
            # In a folder with the sticky bit, a file of another user can be opened but not made.
            if not os.path.exists(path):
                raise
            try:
                return os.open(path, flags, mode)
            except FileNotFoundError:
                return None
        if self.has_explicit_mode:
            try:
                with contextlib.suppress(PermissionError):
                    os.fchmod(descriptor, self._mode)
            except BaseException:
                os.close(descriptor)
                raise
        return descriptor

    def _release(self, hold: _Hold) -> None:
        descriptor, lease = hold.descriptor, hold.lease
        assert descriptor is not None
        # If this fails the lock is still held, and `release` can be tried again.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        hold.descriptor = hold.lease = None
        try:
            os.close(descriptor)
        except OSError:
            if self._close_error_policy == "raise":
                raise
        finally:
            # A lease that had lapsed changes nothing: the kernel's lock excluded others all the time.
            if lease is not None:
                _greenlets.release(lease)


def _try_flock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _CONTENTION:
            return False
        raise
    return True


def _raise_both(body: BaseException, release: BaseException) -> None:
    """Raises both errors as a group, where Python has groups."""
    try:
        group = BaseExceptionGroup  # type: ignore[name-defined,unused-ignore]
    except NameError:
        raise release from body
    release.__context__ = None
    raise group("the block and the release of its lock failed", [body, release]) from None


FileLock = UnixFileLock


def __getattr__(name: str) -> Any:
    # Not every program that locks files uses asyncio.
    if name in ("AsyncAcquireReturnProxy", "AsyncFileLock", "AsyncUnixFileLock", "BaseAsyncFileLock"):
        from . import _async_filelock

        return getattr(_async_filelock, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
