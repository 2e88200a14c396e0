"""Tasks: each goes to one worker."""

from __future__ import annotations

import datetime
import json
import os
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

from . import _greenlets, _native, _own_holds
from ._worker import Worker, storable_text
from .errors import Lost, TenureError

When = Union[float, datetime.datetime]


class Task:
    """A task as it was when it was looked at."""

    __slots__ = ("_fields", "_record")

    def __init__(self, record: _native.TaskRecord) -> None:
        self._record: Optional[_native.TaskRecord] = record
        self._fields: Optional[Dict[str, Any]] = None

    @property
    def fields(self) -> Dict[str, Any]:
        """All fields, with the names that `tenure tasks show --json` uses."""
        # Read when first used: most workers do not look at a task that they have finished.
        if self._fields is None:
            assert self._record is not None
            self._fields = json.loads(self._record.json())
        assert self._fields is not None
        return self._fields

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.fields["id"])

    @property
    def title(self) -> str:
        """What is to be done, in a line."""
        return str(self.fields["title"])

    @property
    def status(self) -> str:
        """`pending`, `in_progress`, `review`, `completed`, `failed`, `cancelled`, `blocked` or `skipped`."""
        return str(self.fields["status"])

    @property
    def section(self) -> Optional[str]:
        """The section that it belongs to."""
        return self.fields.get("section")

    @property
    def files(self) -> List[str]:
        """Globs of the files that it touches, relative to the root."""
        return list(self.fields.get("files", []))

    @property
    def labels(self) -> List[str]:
        """Its labels."""
        return list(self.fields.get("labels", []))

    @property
    def payload(self) -> Any:
        """What was given to `add` for the worker."""
        if self._fields is not None or self._record is None:
            return self.fields.get("payload")
        payload = self._record.payload
        try:
            return None if payload is None else json.loads(payload)
        except ValueError:
            # Programs in other languages may keep any text there.
            return payload

    @property
    def result(self) -> Any:
        """What its worker made of it."""
        return self.fields.get("result")

    @property
    def error(self) -> Optional[str]:
        """Why it failed last."""
        return self.fields.get("error")

    @property
    def attempts(self) -> int:
        """How often it was claimed."""
        return int(self.fields["attempts"])

    def __repr__(self) -> str:
        return f"<tenure.Task {self.id} {self.title!r} {self.status}>"

    def __getstate__(self) -> Dict[str, Any]:
        return self.fields

    def __setstate__(self, fields: Dict[str, Any]) -> None:
        self._record, self._fields = None, fields


class Job(Task):
    """A task that this program works on. Its claim is renewed in the background.

    A job that is dropped unfinished is handed back; one of a process that dies is handed out again.
    """

    __slots__ = ("__weakref__", "_process", "_tasks", "_work")

    def __init__(self, work: _native.Work, tasks: _native.Tasks) -> None:
        super().__init__(work.task)
        self._work = work
        self._tasks = tasks
        self._process = os.getpid()

    @property
    def token(self) -> int:
        """The fencing token of the claim."""
        return self._work.token

    @property
    def lost(self) -> JobLost:
        """`lost.is_set()` says whether the claim was lost."""
        return JobLost(self._work)

    @property
    def is_finished(self) -> bool:
        """Whether it was completed, failed, sent to review, snoozed or released here."""
        return self._work.is_finished()

    def check(self) -> None:
        """Raises `Lost` if the claim may not be trusted any more."""
        if not self._work.is_held():
            resource = f"task:{self.id}"
            raise Lost(f"the claim of task {self.id} ({self.title!r}) was lost", resource=resource)

    def complete(self, result: Any = None) -> Task:
        """It is done, with this result. Raises `Lost`, and changes nothing, if the claim was lost."""
        return self._finish({"complete": {"result": _json(result)}})

    def fail(self, reason: object, *, retry: bool = True) -> Task:
        """It could not be done; it is tried again later if attempts are left."""
        return self._finish({"fail": {"reason": storable_text(str(reason)), "retry": retry}})

    def review(self, result: Any = None) -> Task:
        """It is done, and a person has to look at it."""
        return self._finish({"review": {"result": _json(result)}})

    def snooze(self, seconds: float) -> Task:
        """Not now; this attempt does not count."""
        return self._finish({"snooze": {"pause_ms": round(seconds * 1000)}})

    def release(self) -> Task:
        """Hands it back untouched; this attempt does not count."""
        return self._finish("release")

    def note(self, text: str) -> None:
        """Leaves a note for its next worker."""
        _greenlets.note(self._tasks, self.id, text)

    def _finish(self, finish: Any) -> Task:
        if self._process != os.getpid():
            raise Lost(f"task {self.id} is the parent process's, not this one's")
        return Task(_greenlets.finish(self._work, json.dumps(finish)))

    def _kept(self) -> Optional[_native.Work]:
        """What is held; `None` if it has ended."""
        is_own = self._process == os.getpid()
        return self._work if is_own and self._work.is_held() else None

    def __getstate__(self) -> Dict[str, Any]:
        raise TypeError("a job cannot be pickled: its claim belongs to this process")

    def __repr__(self) -> str:
        state = "finished" if self.is_finished else "lost" if self.lost.is_set() else "claimed"
        return f"<tenure.Job {self.id} {self.title!r} token={self.token} {state}>"


class JobLost:
    """Tells whether a claim was lost."""

    __slots__ = ("_work",)

    def __init__(self, work: _native.Work) -> None:
        self._work = work

    def is_set(self) -> bool:
        """Whether the claim, or a part of it, may not be trusted any more."""
        return not self._work.is_held()


class Tasks:
    """The tasks of a store; see `tenure.Tasks`."""

    def __init__(self, find_store: Callable[[], _native.Store]) -> None:
        self._find_store = find_store
        self._found: Optional[Tuple[_native.Store, _native.Tasks]] = None

    def _native_part(self) -> Tuple[_native.Store, _native.Tasks]:
        """The store as it is chosen now, and its tasks."""
        store = self._find_store()
        found = self._found
        if found is None or found[0] is not store:
            found = self._found = store, _native.Tasks(store)
        return found

    @property
    def _tasks(self) -> _native.Tasks:
        return self._native_part()[1]

    def add(
        self,
        title: str,
        *,
        description: Optional[str] = None,
        section: Optional[str] = None,
        files: Sequence[str] = (),
        labels: Sequence[str] = (),
        priority: Optional[int] = None,
        depends_on: Sequence[str] = (),
        payload: Any = None,
        max_attempts: Optional[int] = None,
        timeout: Optional[float] = None,
        not_before: Optional[When] = None,
        key: Optional[str] = None,
        id: Optional[str] = None,
    ) -> str:
        """Adds a task, and returns its id when it is on disk.

        If there is a task with the same key already, that one's id is returned and nothing is added.
        """
        return self.add_all([{name: value for name, value in locals().items() if name != "self"}])[0]

    def add_all(self, tasks: Iterable[Dict[str, Any]]) -> List[str]:
        """Adds tasks, all or none: each a dictionary with the arguments of `add`. Returns their ids."""
        added = _greenlets.add(
            self._tasks, json.dumps([_new_task(**task) for task in tasks])
        )
        return [id for id, _ in added]

    def claim(
        self,
        *,
        section: Optional[str] = None,
        labels: Sequence[str] = (),
        until_empty: bool = False,
        timeout: Optional[float] = 0.0,
        batch: int = 1,
        ttl: Optional[float] = None,
        task: Optional[str] = None,
        worker: Optional[str] = None,
    ) -> Iterator[Job]:
        """Claims one task after another.

        It ends when no task is ready; with a `timeout`, when none became ready for so many seconds, and
        never with `None`. With a `section` and a `timeout` it ends as soon as nothing is left to do there.
        With `until_empty` it ends when none is ready and none will be: it waits for
        tasks that others work on. `batch` claims so many at once, which costs one sync for all.
        """
        runner = self._runner(section, labels, batch, ttl, task, worker, timeout is not None)
        try:
            while True:
                work = _greenlets.next_work(runner, 0.0 if until_empty else timeout)
                if work is not None:
                    yield self._job(work, ends_with_block=False)
                    if task is not None:
                        return
                elif not until_empty or not _greenlets.wait_for_more(runner, 1.0):
                    return
        finally:
            _greenlets.leave(runner)

    def _job(self, work: _native.Work, *, ends_with_block: bool) -> Job:
        """A job of this thread and task: what they wait for must not be its own."""
        store, tasks = self._native_part()
        job = Job(work, tasks)
        _own_holds.add(store, None, job, ends_with_block=ends_with_block)
        return job

    def _runner(
        self,
        section: Optional[str],
        labels: Sequence[str],
        batch: int,
        ttl: Optional[float],
        task: Optional[str] = None,
        worker: Optional[str] = None,
        ends_with_section: bool = False,
    ) -> _native.Runner:
        return self._tasks.runner(
            section, list(labels), batch, ttl, task, worker, ends_with_section
        )

    def worker(
        self,
        *,
        workers: int = 1,
        section: Optional[str] = None,
        labels: Sequence[str] = (),
        batch: int = 1,
        ttl: Optional[float] = None,
        retry: bool = True,
    ) -> Callable[[Callable[[Job], Any]], Worker]:
        """Decorates a function that is called with each task: in threads, or as a coroutine.

        What it returns is the task's result; what it raises fails the task. `run()` of the decorated
        function works until no task is left.
        """

        def job(work: _native.Work) -> Job:
            return self._job(work, ends_with_block=True)

        def runner(number: int) -> _native.Runner:
            return self._runner(section, labels, batch, ttl, None, str(number))

        def decorator(function: Callable[[Job], Any]) -> Worker:
            return Worker(function, runner, job, workers, retry)

        return decorator

    def list(
        self,
        *,
        status: Optional[str] = None,
        section: Optional[str] = None,
        label: Optional[str] = None,
    ) -> List[Task]:
        """Tasks, oldest first."""
        listed = _greenlets.list_tasks(self._tasks, status, section, label)
        return [Task(record) for record in listed]

    def get(self, task: str) -> Task:
        """The task with this id, a unique beginning of it, or this title. Raises `NoSuchTask`."""
        return Task(_greenlets.find(self._tasks, task))

    def counts(self) -> Dict[str, int]:
        """How many tasks there are of each status."""
        counts: Dict[str, int] = json.loads(_greenlets.counts(self._tasks))
        return counts

    def cancel(self, task: str) -> Task:
        """It is no longer wanted. A worker that has it loses it."""
        return self._change(task, "cancel")

    def retry(self, task: str) -> Task:
        """It is to be done after all."""
        return self._change(task, "retry")

    def skip(self, task: str) -> Task:
        """It is passed over; tasks that depend on it may go on."""
        return self._change(task, "skip")

    def approve(self, task: str) -> Task:
        """It was reviewed and is fine."""
        return self._change(task, "approve")

    def reject(self, task: str, feedback: str) -> Task:
        """It was reviewed and is to be done again."""
        return self._change(task, "reject", feedback)

    def note(self, task: str, text: str) -> None:
        """Leaves a note for its next worker."""
        _greenlets.note(self._tasks, task, text)

    def _change(self, task: str, change: str, reason: Optional[str] = None) -> Task:
        return Task(_greenlets.change(self._tasks, task, change, reason))

    def __repr__(self) -> str:
        found = self._found
        return f"<tenure.Tasks of {found[0].url if found else 'a store that was not needed yet'}>"


def _json(value: Any) -> Optional[str]:
    return None if value is None else json.dumps(value)


def _new_task(title: str, **fields: Any) -> Dict[str, Any]:
    """A task for the native part, from the arguments of `Tasks.add`."""
    if not isinstance(title, str):
        raise TypeError(f"a title is a text, not {type(title).__name__}")
    task: Dict[str, Any] = {"title": title}
    for name in ("files", "labels", "depends_on"):
        values = fields.pop(name, ())
        if isinstance(values, str):
            raise TypeError(f"{name} is a list of texts")
        task[name] = list(values)
    payload = fields.pop("payload", None)
    task["payload"] = _json(payload)
    timeout = fields.pop("timeout", None)
    if timeout is not None:
        task["timeout_ms"] = round(timeout * 1000)
    not_before = fields.pop("not_before", None)
    if not_before is not None:
        is_time = isinstance(not_before, datetime.datetime)
        task["not_before_seconds"] = not_before.timestamp() if is_time else float(not_before)
    for name in ("description", "section", "priority", "max_attempts", "key", "id"):
        value = fields.pop(name, None)
        if value is not None:
            task[name] = value
    if fields:
        raise TypeError(f"a task has no {', '.join(sorted(fields))}")
    return task
