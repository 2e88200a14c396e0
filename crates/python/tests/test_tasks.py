"""Tasks: claims, finishes, workers."""

from __future__ import annotations

import asyncio
import datetime
import pickle
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from helpers import PATIENCE, Program, until

import tenure


def test_a_task_is_claimed_and_completed() -> None:
    q = tenure.Tasks()
    id = q.add("Fix login", files=["src/auth/**"], section="backend", payload={"n": 1}, labels=["py"])
    assert q.get("Fix login").status == "pending" and q.get(id[:8]).id == id
    for job in q.claim(until_empty=True):
        assert (job.id, job.title, job.section) == (id, "Fix login", "backend")
        assert (job.payload, job.files, job.labels) == ({"n": 1}, ["src/auth/**"], ["py"])
        assert job.attempts == 1 and not job.lost.is_set()
        job.check()
        with pytest.raises(tenure.Busy):
            tenure.paths("src/auth/x.py", blocking=False).acquire()
        assert [task.id for task in q.list(status="in_progress")] == [id]
        done = job.complete({"commit": "abc"})
        assert done.status == "completed" and done.result == {"commit": "abc"}
        assert job.is_finished
        with pytest.raises(tenure.TaskError):
            job.complete()
    assert q.counts() == {"completed": 1}
    assert "Fix login" in repr(q.get(id)) and q.get(id).payload == {"n": 1}


def test_a_task_can_be_pickled_and_a_job_cannot() -> None:
    q = tenure.Tasks()
    q.add("Fix login", payload={"n": 1})
    for job in q.claim(until_empty=True):
        with pytest.raises(TypeError, match="its claim belongs to this process"):
            pickle.dumps(job)
        done = job.complete({"commit": "abc"})
        again = pickle.loads(pickle.dumps(done))
        assert (again.fields, again.payload, again.result) == (done.fields, {"n": 1}, {"commit": "abc"})
        assert "grant" not in pickle.dumps(done).decode("latin-1")


def test_how_a_job_can_end() -> None:
    q = tenure.Tasks()
    for name in ("fail", "give up", "review", "snooze", "release", "note"):
        q.add(name, key=name)
    assert q.add("again", key="note") == q.get("note").id, "a known key adds nothing"
    for job in q.claim():
        if job.title == "fail":
            assert job.fail("no network").status == "pending"
        elif job.title == "give up":
            assert job.fail("never", retry=False).error == "never"
        elif job.title == "review":
            job.review({"pr": 7})
        elif job.title == "snooze":
            job.snooze(3600)
        elif job.title == "release":
            if not q.counts().get("cancelled"):
                q.cancel(job.id)
                with pytest.raises(tenure.Lost):
                    job.release()
        else:
            job.note("half done")
            assert job.complete().fields["notes"][0]["text"] == "half done"
    statuses = {task.title: task.status for task in q.list()}
    assert statuses == {
        "fail": "pending",
        "give up": "failed",
        "review": "review",
        "snooze": "pending",
        "release": "cancelled",
        "note": "completed",
    }
    assert q.reject(q.get("review").id, "more tests").fields["feedback"] == "more tests"
    assert q.retry(q.get("give up").id).status == "pending"
    assert q.skip(q.get("fail").id).status == "skipped"
    with pytest.raises(tenure.NoSuchTask):
        q.get("nothing")
    with pytest.raises(tenure.TaskError):
        q.approve(q.get("note").id)


def test_tasks_wait_for_others_and_for_their_time() -> None:
    q = tenure.Tasks()
    later = datetime.datetime.now() + datetime.timedelta(hours=1)
    first = q.add("first", priority=90)
    q.add("second", depends_on=[first], priority=1)
    q.add("later", not_before=later)
    done = [job.complete().title for job in q.claim()]
    assert done == ["first", "second"]
    with pytest.raises(TypeError):
        q.add("x", files="src/**")
    with pytest.raises(TypeError):
        q.add_all([{"title": "x", "colour": "red"}])
    with pytest.raises(tenure.InvalidRequest):
        q.add("x", priority=1000)


def test_several_are_claimed_at_once_and_handed_back() -> None:
    q = tenure.Tasks()
    q.add_all([{"title": f"t{number}"} for number in range(10)])
    jobs = q.claim(batch=4)
    first, second = next(jobs), next(jobs)
    assert q.counts() == {"pending": 6, "in_progress": 4}
    first.complete()
    jobs.close()  # type: ignore[attr-defined]
    assert q.counts() == {"pending": 8, "in_progress": 1, "completed": 1}
    second.complete()
    assert len([job.complete() for job in q.claim(batch=4)]) == 8
    assert q.counts() == {"completed": 10}


def test_only_what_is_wanted() -> None:
    q = tenure.Tasks()
    q.add("a", section="backend", labels=["py", "small"])
    q.add("b", section="backend", labels=["rs"])
    c = q.add("c", section="web", labels=["py"])
    assert [job.complete().title for job in q.claim(section="backend", labels=["py"])] == ["a"]
    assert [job.complete().title for job in q.claim(task=c)] == ["c"]
    assert [task.title for task in q.list(status="pending")] == ["b"]
    with pytest.raises(tenure.NoSuchTask):
        list(q.claim(task="nothing"))


CLAIM = """
    import sys, tenure
    ttl = float(sys.argv[1])
    for job in tenure.Tasks().claim(ttl=ttl):
        print(job.title)
        sys.stdin.readline()
        try:
            job.complete("late")
            print("completed")
        except tenure.Lost as error:
            print("lost", error.resource)
        break
"""


def test_a_worker_that_was_stopped_is_fenced_off() -> None:
    q = tenure.Tasks()
    id = q.add("one")
    with Program(CLAIM, 1) as other:
        assert other.line() == "one"
        other.signal(signal.SIGSTOP)
        for job in q.claim(until_empty=True):
            other.signal(signal.SIGCONT)
            other.tell()
            assert other.line() == f"lost task:{id}"
            job.complete("in time")
    assert q.get(id).result == "in time"


def test_a_killed_workers_task_is_handed_out_again() -> None:
    q = tenure.Tasks()
    q.add("one")
    with Program(CLAIM, 30) as other:
        assert other.line() == "one"
        jobs = iter(q.claim(until_empty=True))
        got: List[Any] = []
        thread = threading.Thread(target=lambda: got.append(next(jobs)))
        thread.start()
        other.kill()
        thread.join()
        assert got[0].complete().attempts == 2


def test_threads_work_on_each_task_once() -> None:
    q, calls = tenure.Tasks(), []
    q.add_all([{"title": f"t{number}", "payload": number} for number in range(20)])

    @q.worker(workers=4, batch=3)
    def work(job: tenure.Job) -> int:
        calls.append((job.payload, threading.current_thread().name))
        return int(job.payload) * 2

    assert work.run() == tenure.Report(completed=20)
    assert sorted(payload for payload, _ in calls) == list(range(20))
    assert sorted(task.result for task in q.list()) == [number * 2 for number in range(20)]


def test_what_a_function_raises_fails_its_task() -> None:
    q = tenure.Tasks()
    q.add("good")
    q.add("bad")
    q.add("own words")

    @q.worker(workers=2, retry=False)
    def work(job: tenure.Job) -> None:
        if job.title == "bad":
            raise KeyError("no such thing")
        if job.title == "own words":
            job.review("look at it")

    assert work.run() == tenure.Report(completed=2, failed=1)
    assert q.get("bad").error == "KeyError: 'no such thing'"
    assert q.get("own words").status == "review"


BAD_RESULTS: Dict[str, Callable[[], Any]] = {
    "set": lambda: {1},
    "time": lambda: datetime.datetime.now(),
    "bytes": lambda: b"x",
    "long": lambda: "x" * 300_000,
    "loop": lambda: loop(),
    "exit": lambda: sys.exit(3),
    "surrogate": lambda: fail("half \ud800"),
    "zero": lambda: fail("a\0b"),
    "unprintable": lambda: fail(Unprintable()),
}


class Unprintable:
    def __str__(self) -> str:
        raise ValueError("no words")


def fail(reason: object) -> None:
    raise RuntimeError(reason)


def loop() -> List[Any]:
    inside: List[Any] = []
    inside.append(inside)
    return inside


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_function_returns_or_raises_ends_no_other_task(is_async: bool) -> None:
    q = tenure.Tasks()
    for name in BAD_RESULTS:
        q.add(name)
    q.add_all([{"title": f"good {number}"} for number in range(6)])

    def result(job: tenure.Job) -> Any:
        return BAD_RESULTS[job.title]() if job.title in BAD_RESULTS else "done"

    async def later(job: tenure.Job) -> Any:
        return result(job)

    work = q.worker(workers=3, retry=False)(later if is_async else result)
    assert work.run() == tenure.Report(completed=6, failed=len(BAD_RESULTS))
    assert q.counts() == {"completed": 6, "failed": len(BAD_RESULTS)}
    task = q.get("set")
    assert task.error == "TypeError: Object of type set is not JSON serializable"
    assert "Traceback" in task.fields["notes"][0]["text"]
    assert q.get("exit").error == "SystemExit: 3"
    assert q.get("zero").error == "RuntimeError: a\\x00b"
    error = q.get("long").error
    assert error is not None
    assert "the result has 300002 characters; the most allowed is 300000" in error


def test_a_result_that_is_too_long_leaves_the_claim_held() -> None:
    q = tenure.Tasks()
    q.add("long")
    for job in q.claim():
        for finish in (job.complete, job.review):
            with pytest.raises(tenure.InvalidRequest, match="the most allowed is 300000"):
                finish("x" * 300_000)
        job.check()
        assert not job.is_finished
        assert job.fail("the result was\0too long", retry=False).status == "failed"


def test_coroutines_work_beside_each_other() -> None:
    q, inside, most = tenure.Tasks(), [0], [0]
    q.add_all([{"title": f"t{number}"} for number in range(12)])

    @q.worker(workers=4)
    async def work(job: tenure.Job) -> str:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        while most[0] < 2:
            await asyncio.sleep(0)
        inside[0] -= 1
        if job.title == "t3":
            raise ValueError("three")
        return job.title

    report = work.run()
    assert (report.completed, report.lost) == (11, 0) and report.failed >= 1
    assert most[0] >= 2


def test_a_worker_waits_until_nothing_is_left() -> None:
    q = tenure.Tasks()
    q.add("first")
    q.add("second", depends_on=[q.get("first").id])
    jobs = q.claim()
    first = next(iter(jobs))
    done = []

    @q.worker()
    def work(job: tenure.Job) -> None:
        done.append(job.title)

    thread = threading.Thread(target=work.run)
    thread.start()
    assert done == [] and thread.is_alive()
    first.complete()
    thread.join()
    assert done == ["second"]


def test_a_worker_can_be_stopped() -> None:
    q = tenure.Tasks()

    @q.worker(workers=2)
    def work(job: tenure.Job) -> None:
        pass

    thread = threading.Thread(target=lambda: work.run(until_empty=False))
    thread.start()
    q.add("one")
    until(lambda: q.counts().get("completed"))
    work.stop()
    thread.join()


def test_a_job_that_is_dropped_is_handed_back() -> None:
    q = tenure.Tasks()
    q.add("one")
    job = next(iter(q.claim()))
    del job
    until(lambda: q.counts() == {"pending": 1})


def test_a_claim_is_renewed_while_its_worker_lives() -> None:
    q = tenure.Tasks()
    q.add("one")
    for job in q.claim(ttl=0.5):
        time.sleep(1.5)
        job.check()
        assert list(q.claim()) == []
        job.complete()


def test_a_job_that_raises_cancelled_fails_alone() -> None:
    q = tenure.Tasks()

    @q.worker(workers=2, retry=False)
    async def work_later(job: tenure.Job) -> None:
        if job.title == "bad":
            raise asyncio.CancelledError("by itself")

    @q.worker(workers=2, retry=False)
    def work(job: tenure.Job) -> None:
        if job.title == "bad":
            raise asyncio.CancelledError("by itself")

    for worker in (work_later, work):
        bad = q.add("bad")
        for number in range(4):
            q.add(f"good {number}")
        assert worker.run() == tenure.Report(completed=4, failed=1)
        assert q.get(bad).status == "failed"
        assert q.get(bad).error == "CancelledError: by itself"


def test_a_worker_that_is_cancelled_hands_its_task_back() -> None:
    q = tenure.Tasks()
    id = q.add("long")
    begun = []

    @q.worker()
    async def work(job: tenure.Job) -> None:
        begun.append(job.id)
        await asyncio.sleep(PATIENCE)

    async def main() -> None:
        running = asyncio.ensure_future(work.run_async())
        while not begun:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    until(lambda: q.get(id).status == "pending")


def test_tasks_of_a_module_use_the_store_of_the_test(here: Path) -> None:
    q = tenure.Tasks()

    @q.worker()
    def work(job: tenure.Job) -> None:
        pass

    assert not list((here / ".tenure").iterdir()), "nothing was opened yet"
    with tenure.testing.memory() as store:
        q.add("in memory")
        assert store.tasks().counts() == {"pending": 1}
        assert work.run() == tenure.Report(completed=1)
    assert q.counts() == {}


def test_a_claim_for_a_section_ends_when_nothing_is_left_there() -> None:
    q = tenure.Tasks()
    q.add("one", section="s")
    q.add("elsewhere", section="t")
    done = []
    for job in q.claim(section="s", timeout=10 * PATIENCE):
        done.append(job.title)
        job.complete()
    assert done == ["one"]
    for job in q.claim(section="t", timeout=10 * PATIENCE, batch=2):
        done.append(job.title)
        job.complete()
    assert done == ["one", "elsewhere"]
