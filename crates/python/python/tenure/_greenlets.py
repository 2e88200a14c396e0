"""Calls that block: the thread, or where gevent replaced threads only the greenlet."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any, Callable, List, Optional, Tuple, TypeVar, Union

from . import _native, _request, _warnings
from .errors import Busy

T = TypeVar("T")

#: How often a greenlet asks for the kernel's lock on a file, which another program has for one write.
ASK_INTERVAL = 0.002


def hold(
    store: _native.Store,
    wanted: _request.Wanted,
    limit: Optional[float],
    keeps: Optional[List[_native.Kept]],
) -> Union[_native.Guard, str]:
    """Takes what is wanted; a guard, or who is in the way as JSON."""
    return _call(
        lambda: store.hold(wanted, limit, keeps),
        lambda done: store.start_hold(wanted, limit, keeps, done),
    )


def release(guard: _native.Guard) -> Optional[bool]:
    """Gives it back; says whether it was held until now. `None` if it was given back before."""
    return _call(guard.release, guard.start_release)


def confirm(guard: _native.Guard) -> bool:
    """Renews now, and says whether it is still held by the store's word."""
    return _call(guard.confirm, guard.start_confirm)


def wait_lost(guard: _native.Guard, limit: Optional[float]) -> bool:
    """Waits until the lease is lost or released, up to a limit; says whether it is."""
    return _call(lambda: guard.wait_lost(limit), lambda done: guard.start_wait_lost(limit, done))


def look(store: _native.Store, names: Optional[List[str]] = None, are_paths: bool = False) -> str:
    """Who holds and who waits: for these names, or for anything. As JSON."""
    return _call(
        lambda: store.look(names, are_paths),
        lambda done: store.start_look(names, are_paths, done),
    )


def append_lines(path: str, lines: bytes, limit: Optional[float], sync: bool) -> None:
    """Appends whole lines to a file, waiting for the kernel's lock on it."""
    if not are_used():
        _native.append_lines(path, lines, limit, sync)
        return
    gevent: Any = importlib.import_module("gevent")
    end = None if limit is None else time.monotonic() + limit
    while True:
        try:
            _native.append_lines(path, lines, 0.0, sync)
            return
        except Busy:
            if end is not None and time.monotonic() >= end:
                raise
        gevent.sleep(ASK_INTERVAL)


def seal(
    update: _native.FileUpdate, guard: _native.Guard, content: bytes, backup: Optional[str]
) -> _native.SealedUpdate:
    """Writes the new content of a file, and waits until it may take the place of the old one."""
    return _call(
        lambda: update.seal(guard, content, backup),
        lambda done: update.start_seal(guard, content, backup, done),
    )


def next_work(runner: _native.Runner, limit: Optional[float]) -> Optional[_native.Work]:
    """Takes the next task, waiting for one."""
    return _call(lambda: runner.next(limit), lambda done: runner.start_next(limit, done))


def wait_for_more(runner: _native.Runner, limit: float) -> bool:
    """Whether a task for this worker may still come; if so, waits a moment for a change."""
    return _call(
        lambda: runner.wait_for_more(limit),
        lambda done: runner.start_wait_for_more(limit, done),
    )


def leave(runner: _native.Runner) -> None:
    """Gives back the section that the worker keeps, and tasks that were not handed out."""
    _call(runner.leave, runner.start_leave)


def finish(work: _native.Work, finish: str) -> _native.TaskRecord:
    """Says how the work ended, as JSON. Returns the task as it is now."""
    return _call(lambda: work.finish(finish), lambda done: work.start_finish(finish, done))


def note(tasks: _native.Tasks, id: str, text: str) -> None:
    """Adds a note to a task for its next worker."""
    _call(lambda: tasks.note(id, text), lambda done: tasks.start_note(id, text, done))


def open_store(
    url: Optional[str], label: Optional[str], folder: Optional[str]
) -> _native.Store:
    """Opens a store."""
    if not are_used():
        return _native.Store.open(url, label, folder)
    gevent: Any = importlib.import_module("gevent")
    store: _native.Store = gevent.get_hub().threadpool.apply(
        _native.Store.open, (url, label, folder)
    )
    return store


def break_hold(store: _native.Store, name: str, token: int, reason: str) -> bool:
    """Breaks the hold with this token; says whether there was one."""
    return _call(
        lambda: store.break_hold(name, token, reason),
        lambda done: store.start_break_hold(name, token, reason, done),
    )


def verify(store: _native.Store, name: str, token: int) -> bool:
    """Whether this token holds this resource now."""
    return _call(
        lambda: store.verify(name, token),
        lambda done: store.start_verify(name, token, done),
    )


def add(tasks: _native.Tasks, new: str) -> List[Tuple[str, bool]]:
    """Adds tasks, as JSON; their ids, and whether each is new."""
    return _call(lambda: tasks.add(new), lambda done: tasks.start_add(new, done))


def list_tasks(
    tasks: _native.Tasks,
    status: Optional[str],
    section: Optional[str],
    label: Optional[str],
) -> List[_native.TaskRecord]:
    """Tasks, oldest first."""
    return _call(
        lambda: tasks.list(status, section, label),
        lambda done: tasks.start_list(status, section, label, done),
    )


def find(tasks: _native.Tasks, text: str) -> _native.TaskRecord:
    """The task that is meant."""
    return _call(lambda: tasks.find(text), lambda done: tasks.start_find(text, done))


def counts(tasks: _native.Tasks) -> str:
    """How many tasks there are of each status, as JSON."""
    return _call(tasks.counts, tasks.start_counts)


def change(
    tasks: _native.Tasks, id: str, change: str, reason: Optional[str]
) -> _native.TaskRecord:
    """Changes a task by hand. Returns it."""
    return _call(
        lambda: tasks.change(id, change, reason),
        lambda done: tasks.start_change(id, change, reason, done),
    )


def are_used() -> bool:
    """Whether gevent replaced threads."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and monkey.is_module_patched("threading")


def _call(
    block: Callable[[], T], start: Callable[[_native.Done], Optional[_native.Pending]]
) -> T:
    if not are_used():
        return block()
    answer: T = _wait(start)
    return answer


class _Done:
    """Takes the result from the background thread to gevent's."""

    def __init__(self) -> None:
        # It has no types.
        gevent: Any = importlib.import_module("gevent")
        event: Any = importlib.import_module("gevent.event")
        self.answers: List[Tuple[Any, Optional[BaseException]]] = []
        self._warnings: List[str] = []
        self._woken = event.Event()
        self._watcher = gevent.get_hub().loop.async_()
        self._watcher.start(self._woken.set)

    # In another thread, where only the watcher may be used.

    def __call__(self, result: Any, error: Optional[BaseException]) -> None:
        self.answers.append((result, error))
        self._watcher.send()

    def warn(self, message: str) -> None:
        self._warnings.append(message)
        self._watcher.send()

    # In gevent's thread.

    def wait(self) -> None:
        """Lets other greenlets run until there is an answer."""
        while not self.answers:
            self._woken.wait()
            self._woken.clear()
            while self._warnings:
                _warnings.warn(self._warnings.pop(0))

    def close(self) -> None:
        self._watcher.stop()
        self._watcher.close()


def _wait(start: Callable[[_native.Done], Optional[_native.Pending]]) -> Any:
    """Starts it and lets other greenlets run until it is done. If the greenlet is killed, nothing stays
    held or queued."""
    done = _Done()
    try:
        pending = start(done)
        if pending is None:
            return None
        try:
            done.wait()
        except BaseException:
            pending.cancel()
            raise
    finally:
        done.close()
    result, error = done.answers.pop()
    if error is not None:
        raise error
    return result
