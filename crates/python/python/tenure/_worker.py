"""A function that is called with each task, in threads or as a coroutine."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
import traceback
from typing import TYPE_CHECKING, Any, Callable, List, Optional

from . import _callables, _greenlets, _native
from ._asyncio import call
from .errors import Lost

if TYPE_CHECKING:
    from ._tasks import Job

#: How often a thread that waits for a task looks whether it is to stop.
STOP_INTERVAL = 0.2

#: How much of a traceback is kept, its end: a note has up to 8 KiB.
TRACEBACK_MAX_BYTES = 7 * 1024


@dataclasses.dataclass
class Report:
    """What came of the tasks."""

    #: So many were completed, or finished by the function itself.
    completed: int = 0
    #: So many calls raised an exception.
    failed: int = 0
    #: So many were lost to another worker before they were finished; these changed nothing.
    lost: int = 0


class Worker:
    """A function that works on tasks. Calling it calls the function; `run()` works."""

    def __init__(
        self,
        function: Callable[[Job], Any],
        runner: Callable[[int], _native.Runner],
        job: Callable[[_native.Work], Job],
        workers: int,
        retry: bool,
    ) -> None:
        if workers < 1:
            raise ValueError("there must be at least one worker")
        self.function = function
        self.is_async = _callables.is_coroutine_function(function)
        self._runner = runner
        self._job = job
        self._workers = workers
        self._retry = retry
        self._stop = threading.Event()
        self._counting = threading.Lock()

    def __call__(self, job: Job) -> Any:
        return self.function(job)

    def stop(self) -> None:
        """Lets `run` return after the tasks that are being worked on. Any thread may call it."""
        self._stop.set()

    def run(self, *, until_empty: bool = True) -> Report:
        """Works until no task is left, or for ever. Ctrl-C lets running functions end first."""
        if self.is_async:
            return asyncio.run(self.run_async(until_empty=until_empty))
        self._stop.clear()
        report = Report()
        errors: List[BaseException] = []

        def work(number: int) -> None:
            try:
                self._work(self._runner(number), report, until_empty)
            except BaseException as error:
                errors.append(error)
                self._stop.set()

        threads = [
            threading.Thread(target=work, args=(number,), name=f"tenure-worker-{number}")
            for number in range(1, self._workers + 1)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            # Also if Ctrl-C came while they were being started.
            self._stop.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
        if errors:
            raise errors[0]
        return report

    def _work(self, runner: _native.Runner, report: Report, until_empty: bool) -> None:
        try:
            while not self._stop.is_set():
                work = _greenlets.next_work(runner, 0.0 if until_empty else STOP_INTERVAL)
                if work is not None:
                    self._do(self._job(work), report)
                elif until_empty and not _greenlets.wait_for_more(runner, STOP_INTERVAL):
                    return
        finally:
            _greenlets.leave(runner)

    def _do(self, job: Job, report: Report) -> None:
        finish, failure = None, None
        try:
            result = self.function(job)
            finish = _completion(job, result)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            failure = error
            finish = self._failure(job, error)
        try:
            if finish is not None:
                if failure is not None:
                    _keep_traceback(job, failure)
                _greenlets.finish(job._work, finish)
            self._count(report, failure)
        except Lost as error:
            self._count(report, error)

    async def run_async(self, *, until_empty: bool = True) -> Report:
        """The same for a coroutine function, on the running event loop."""
        if not self.is_async:
            raise TypeError("run_async needs a coroutine function")
        self._stop.clear()
        report = Report()
        numbers = range(1, self._workers + 1)
        #: Not empty as soon as the workers are being cancelled.
        ending: List[bool] = []
        tasks = [
            asyncio.ensure_future(
                self._work_async(self._runner(number), report, until_empty, ending)
            )
            for number in numbers
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            ending.append(True)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return report

    async def _work_async(
        self, runner: _native.Runner, report: Report, until_empty: bool, ending: List[bool]
    ) -> None:
        try:
            while not self._stop.is_set():
                limit = 0.0 if until_empty else STOP_INTERVAL
                work = await call(lambda done: runner.start_next(limit, done))
                if work is not None:
                    await self._do_async(self._job(work), report, ending)
                elif until_empty:
                    pause = STOP_INTERVAL
                    if not await call(lambda done: runner.start_wait_for_more(pause, done)):
                        return
        finally:
            await call(runner.start_leave)

    async def _do_async(self, job: Job, report: Report, ending: List[bool]) -> None:
        finish, failure = None, None
        try:
            result = await self.function(job)
            finish = _completion(job, result)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            # What the function raised itself fails its task; the end of this worker is no failure.
            if isinstance(error, asyncio.CancelledError) and (ending or _is_being_cancelled()):
                if not job.is_finished:
                    # In the background; the exception may keep the job for long.
                    job._work.start_finish(json.dumps("release"), _Unheeded())
                raise
            failure = error
            finish = self._failure(job, error)
        try:
            if finish is not None:
                if failure is not None:
                    await _keep_traceback_async(job, failure)
                await call(lambda done: job._work.start_finish(finish, done))
            self._count(report, failure)
        except Lost as error:
            self._count(report, error)

    def _failure(self, job: Job, failure: BaseException) -> Optional[str]:
        """What to say of a task that failed; nothing if the function said it."""
        if job.is_finished:
            return None
        try:
            reason = f"{type(failure).__name__}: {failure}"
        except Exception:
            reason = type(failure).__name__
        return json.dumps({"fail": {"reason": storable_text(reason), "retry": self._retry}})

    def _count(self, report: Report, failure: Optional[BaseException]) -> None:
        with self._counting:
            if failure is None:
                report.completed += 1
            elif isinstance(failure, Lost):
                report.lost += 1
            else:
                report.failed += 1


class _Unheeded:
    """Takes a result that nothing waits for."""

    def __call__(self, result: Any, error: Optional[BaseException]) -> None:
        pass

    def warn(self, message: str) -> None:
        pass


def _is_being_cancelled() -> bool:
    """Whether something cancels the running task, as far as Python tells: from 3.11 on."""
    cancelling = getattr(asyncio.current_task(), "cancelling", None)
    return cancelling is not None and cancelling() > 0


def _completion(job: Job, result: Any) -> Optional[str]:
    """What to say of a task that is done; nothing if the function said it."""
    if job.is_finished:
        return None
    text = None if result is None else json.dumps(result)
    finish = json.dumps({"complete": {"result": text}})
    # A result that no task keeps is the function's failure, as one that is not JSON.
    job._work.check_finish(finish)
    return finish


def _keep_traceback(job: Job, failure: BaseException) -> None:
    """Leaves a note for the task's next worker. Without one the task fails all the same."""
    if isinstance(failure, Lost):
        return
    try:
        job.note(_traceback(failure))
    except Exception:
        pass


async def _keep_traceback_async(job: Job, failure: BaseException) -> None:
    if isinstance(failure, Lost):
        return
    try:
        text = _traceback(failure)
        await call(lambda done: job._tasks.start_note(job.id, text, done))
    except Exception:
        pass


def _traceback(failure: BaseException) -> str:
    """Its end, as much as a note can keep."""
    lines = traceback.format_exception(type(failure), failure, failure.__traceback__)
    end = storable_text("".join(lines)).encode()[-TRACEBACK_MAX_BYTES:]
    return end.decode(errors="ignore").strip()


def storable_text(text: str) -> str:
    """The text with escapes for what not every store keeps: half a surrogate pair, and the character 0."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\x00")
