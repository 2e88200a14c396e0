"""Waits that would never end are refused, or warned of; a lock can be reentrant."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import queue
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Iterator, List, Optional

import pytest
from helpers import PATIENCE, Program, run, until

import tenure
from tenure.filelock import FileLock


def test_another_lock_object_of_the_same_thread_is_refused() -> None:
    with tenure.lock("x"), tenure.paths("src/**"):
        for lock in (
            tenure.lock("x"),
            tenure.lock("x", shared=True),
            tenure.slots("x", 2),
            tenure.paths("src/a.py"),
        ):
            with pytest.raises(tenure.Deadlock):
                lock.acquire()
        with tenure.lock("y"):
            pass
    with tenure.slots("gpu", 2), tenure.slots("gpu", 2):
        with pytest.raises(tenure.Deadlock, match="all slots"):
            tenure.slots("gpu", 2).acquire()
    with tenure.lock("x"):
        pass


def test_a_wait_with_a_limit_for_oneself_is_warned_of() -> None:
    with tenure.lock("x"):
        with pytest.warns(RuntimeWarning, match="which it holds itself"):
            with pytest.raises(tenure.Timeout):
                tenure.lock("x").acquire(timeout=0.05)
        # Where Python makes warnings errors, it ends the wait.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning):
                tenure.lock("x").acquire(timeout=500)
        until(lambda: not tenure.lock("x").status()["waiting"])


def update(path: str, timeout: Optional[float] = None) -> None:
    with tenure.update_json(path, timeout=timeout):
        pass


def test_an_update_of_a_file_is_a_hold_like_others(here: Path) -> None:
    with tenure.update_json("n.json"):
        with pytest.raises(tenure.Deadlock):
            update("n.json")
        with pytest.raises(tenure.Deadlock):
            tenure.paths("*.json").acquire()
        update("m.json")
        with pytest.warns(RuntimeWarning, match="path:n.json, which it holds itself$"):
            with pytest.raises(tenure.Timeout):
                update("n.json", timeout=0.05)
        # Other files of the same name are other files.
        (here / "folder").mkdir()
        update("folder/n.json")
    with tenure.paths("*.json"), pytest.raises(tenure.Deadlock):
        update("n.json")
    update("n.json")


OPPOSITE = {
    "two updates": ("update('a.json')", "update('b.json')", "path:b.json"),
    "a lock and an update": ("tenure.lock('x')", "update('b.json')", "path:b.json"),
    "an update and a lock": ("update('a.json')", "tenure.lock('x')", "x"),
}


@pytest.mark.parametrize("order", OPPOSITE)
def test_updates_in_opposite_orders_are_not_left_waiting(order: str) -> None:
    first, second, awaited = OPPOSITE[order]
    code = f"""
import tenure
update = tenure.update_json
with {first}:
    print("has the first")
    input()
    with {second}:
        print("has both")
"""
    names = {"update": tenure.update_json, "tenure": tenure}
    with Program(code) as other:
        assert other.line() == "has the first"
        with eval(second, names):
            other.tell()
            until(lambda: tenure.lock(awaited).status()["waiting"])
            with pytest.raises(tenure.Deadlock), eval(first, names):
                pass
        assert other.line() == "has both"
        assert other.end()[0] == 0


def test_a_job_does_not_wait_for_its_own_files(here: Path) -> None:
    (here / "src").mkdir()
    q = tenure.Tasks()
    q.add("first", files=["src/**"], section="backend")
    # Claimed together with the first.
    q.add("second", files=["docs/**"])

    def refused() -> None:
        for lock in (tenure.paths("src/a.py"), tenure.lock("section:backend")):
            with pytest.raises(tenure.Deadlock):
                lock.acquire()
        with pytest.raises(tenure.Deadlock):
            update("src/n.json")

    jobs = q.claim(batch=2)
    job = next(jobs)
    refused()
    with pytest.raises(tenure.Deadlock):
        tenure.paths("docs/a.md").acquire()
    with pytest.warns(RuntimeWarning, match="which it holds itself"):
        with pytest.raises(tenure.Timeout):
            tenure.paths("src/a.py").acquire(timeout=0.05)
    job.complete()
    with tenure.paths("src/a.py"):
        pass
    next(jobs).complete()

    @q.worker()
    def work(job: tenure.Job) -> None:
        refused()

    @q.worker()
    async def work_later(job: tenure.Job) -> None:
        refused()
        with pytest.raises(tenure.Deadlock):
            await tenure.aio.paths("src/a.py").acquire()

    for worker in (work, work_later):
        q.add("again", files=["src/**"], section="backend")
        assert worker.run() == tenure.Report(completed=1)


def test_a_long_wait_for_the_own_process_is_warned_of() -> None:
    held = tenure.lock("x").acquire()

    def wait() -> None:
        tenure.lock("x").acquire().release()

    async def wait_later() -> None:
        async with tenure.aio.lock("x"):
            pass

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        threads = [
            threading.Thread(target=wait),
            threading.Thread(target=lambda: asyncio.run(wait_later())),
        ]
        for thread in threads:
            thread.start()
        until(lambda: len(caught) >= 2)
    held.release()
    for thread in threads:
        thread.join()
    texts = [str(one.message) for one in caught]
    assert all("for x, which this process holds itself" in text for text in texts), texts
    assert __file__ in [one.filename for one in caught]


def test_a_function_that_calls_itself_is_refused_or_reentrant() -> None:
    @tenure.locked("x")
    def strict(depth: int) -> int:
        return strict(depth - 1) if depth else 0

    with pytest.raises(tenure.Deadlock):
        strict(1)

    @tenure.locked("x", reentrant=True)
    def deep(depth: int) -> int:
        assert tenure.lock("x").locked()
        return depth and deep(depth - 1)

    assert deep(5) == 0
    assert not tenure.lock("x").locked()


def test_a_reentrant_lock_is_one_hold_until_the_last_release() -> None:
    lock = tenure.lock("x", reentrant=True)
    with lock as outer, tenure.lock("x", reentrant=True) as inner:
        assert inner is outer
        inner.release()
        outer.check()
        with lock:
            pass
        assert lock.locked()
    assert not lock.locked()

    # For another thread it is held.
    with lock:
        refused = []

        def other() -> None:
            refused.append(lock.try_acquire())

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert refused == [None]


def test_tasks_that_would_block_their_loop_for_ever_are_refused() -> None:
    async def main() -> None:
        entered = asyncio.Event()
        leave = asyncio.Event()

        async def hold() -> None:
            with tenure.lock("x"):
                entered.set()
                await leave.wait()

        task = asyncio.ensure_future(hold())
        await entered.wait()
        with pytest.raises(tenure.Deadlock):
            tenure.lock("x").acquire()
        leave.set()
        await task
        async with tenure.aio.lock("x"):
            with pytest.raises(tenure.Deadlock):
                await tenure.aio.lock("x").acquire()
            with pytest.raises(tenure.Deadlock):
                tenure.lock("x").acquire()
            async with tenure.aio.lock("y", reentrant=True):
                async with tenure.aio.lock("y", reentrant=True):
                    pass
                assert tenure.lock("y").locked()
        assert not tenure.lock("y").locked()

        # Another task may wait: this one goes on.
        async with tenure.aio.lock("x"):
            waiter = asyncio.ensure_future(tenure.aio.lock("x").acquire())
            while not tenure.lock("x").status()["waiting"]:
                await asyncio.sleep(0.01)
        (await waiter).release()

    asyncio.run(main())


def test_two_processes_that_would_wait_for_each_other_are_not_left_waiting() -> None:
    code = """
        import tenure
        with tenure.lock("a"):
            print("has a")
            input()
            with tenure.lock("b"):
                print("has both")
    """
    with Program(code) as other:
        assert other.line() == "has a"
        with tenure.lock("b"):
            other.tell()
            until(lambda: tenure.lock("b").status()["waiting"])
            with pytest.raises(tenure.Deadlock):
                tenure.lock("a").acquire()
        assert other.line() == "has both"
        assert other.end()[0] == 0


def after_a_thread_that_ended(act: Callable[[], None]) -> tenure.Held:
    """Calls this in a thread with the number of one that took x, handed the hold over and ended."""
    handed: "queue.Queue[tenure.Held]" = queue.Queue()
    first = threading.Thread(target=lambda: handed.put(tenure.lock("x").acquire()))
    first.start()
    number = first.ident
    first.join()
    called = False

    def act_as_first() -> None:
        nonlocal called
        if threading.get_ident() == number:
            called = True
            act()

    for _ in range(1000):
        thread = threading.Thread(target=act_as_first)
        thread.start()
        until(lambda: not thread.is_alive() or tenure.lock("x").status()["waiting"])
        if called:
            return handed.get()
    raise AssertionError("no thread got the number of the first")


def test_a_thread_has_nothing_of_one_that_ended_with_the_same_number() -> None:
    answers: "queue.Queue[object]" = queue.Queue()

    def take_again() -> None:
        answers.put(tenure.lock("x", reentrant=True).try_acquire())

    after_a_thread_that_ended(take_again).release()
    assert answers.get(timeout=PATIENCE) is None

    def wait() -> None:
        try:
            tenure.lock("x").acquire().release()
            answers.put("had it")
        except tenure.TenureError as error:
            answers.put(error)

    after_a_thread_that_ended(wait).release()
    assert answers.get(timeout=PATIENCE) == "had it"


def test_calls_in_one_thread_of_a_pool_wait_for_each_other() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        for reentrant in (False, True):
            lock = tenure.lock("x", reentrant=reentrant)
            held = await asyncio.to_thread(lock.acquire)
            assert await asyncio.to_thread(lock.try_acquire) is None
            for in_own_context in (True, False):
                waiting: "asyncio.Future[tenure.Held]"
                if in_own_context:
                    waiting = asyncio.ensure_future(asyncio.to_thread(lock.acquire))
                else:
                    waiting = loop.run_in_executor(None, tenure.lock("x").acquire)
                while not tenure.lock("x").status()["waiting"]:
                    assert not waiting.done(), waiting
                    await asyncio.sleep(0.01)
                held.release()
                held = await waiting
            held.release()

    asyncio.run(main())


def test_a_hold_that_another_thread_uses_is_waited_for() -> None:
    used, go_on = threading.Event(), threading.Event()

    def use(held: tenure.Held) -> None:
        held.check()
        used.set()
        assert go_on.wait(PATIENCE)
        until(lambda: tenure.lock("x").status()["waiting"])
        held.release()

    with tenure.lock("x") as held:
        thread = threading.Thread(target=use, args=(held,))
        thread.start()
        assert used.wait(PATIENCE)
        go_on.set()
        tenure.lock("x").acquire().release()
        thread.join()


def test_what_acquire_returned_is_waited_for_while_another_thread_could_give_it_back() -> None:
    held = tenure.lock("x").acquire()

    def give_back() -> None:
        until(lambda: tenure.lock("x").status()["waiting"])
        held.release()

    thread = threading.Thread(target=give_back)
    thread.start()
    tenure.lock("x").acquire().release()
    thread.join()

    async def main() -> None:
        held = await tenure.aio.lock("x").acquire()

        async def give_back() -> None:
            while not tenure.lock("x").status()["waiting"]:
                await asyncio.sleep(0.01)
            held.release()

        task = asyncio.ensure_future(give_back())
        (await tenure.aio.lock("x").acquire()).release()
        await task

    asyncio.run(main())


def test_what_acquire_returned_counts_in_the_only_thread() -> None:
    code = """
        import asyncio, tenure
        held = tenure.lock("x").acquire()
        try:
            tenure.lock("x").acquire()
        except tenure.Deadlock:
            print("refused")
        held.release()
        async def main():
            held = await tenure.aio.lock("x").acquire()
            try:
                await tenure.aio.lock("x").acquire()
            except tenure.Deadlock:
                print("refused too")
        asyncio.run(main())
    """
    assert run(code).split("\n")[:2] == ["refused", "refused too"]


def test_a_hold_that_nothing_knows_any_more_is_given_back() -> None:
    tenure.lock("x").acquire()
    until(lambda: not tenure.lock("x").locked())


def test_generators_are_refused_by_the_decorators() -> None:
    def numbers() -> Iterator[int]:
        yield 1

    async def later() -> AsyncIterator[int]:
        yield 1

    for function in (numbers, later):
        with pytest.raises(TypeError, match="runs after it was called"):
            tenure.locked("x")(function)
        with pytest.raises(TypeError, match="runs after it was called"):
            tenure.aio.locked("x")(function)  # type: ignore[type-var]


def test_what_runs_after_the_call_is_refused() -> None:
    started = []

    @contextlib.contextmanager
    def block() -> Iterator[None]:
        started.append("block")
        yield

    @contextlib.asynccontextmanager
    async def later_block() -> AsyncIterator[None]:
        started.append("later block")
        yield

    def numbers() -> Iterator[int]:
        started.append("numbers")
        yield 1

    async def later() -> None:
        started.append("later")

    class Numbers:
        def __call__(self) -> Iterator[int]:
            return numbers()

    class Generator:
        def __call__(self) -> Iterator[int]:
            yield 1

    class Later:
        async def __call__(self, job: Any = None) -> None:
            started.append("called")

    decorators: List[Callable[[Any], Any]] = [tenure.locked("x"), FileLock("f.lock")]
    for locked in decorators:
        # When decorating.
        for function in (numbers, functools.partial(numbers), later, Generator(), Later()):
            with pytest.raises(TypeError):
                locked(function)
        # As soon as it shows.
        for shows in (block, later_block, Numbers(), lambda: numbers(), lambda: later()):
            with pytest.raises(TypeError, match="runs after it was called"):
                locked(shows)()
        assert locked(lambda: [1])() == [1]
    assert started == []
    assert not tenure.lock("x").locked() and not FileLock("f.lock").is_locked

    # That is held while it runs.
    asyncio.run(tenure.aio.locked("x")(Later())())
    assert started == ["called"]

    q = tenure.Tasks()
    q.add("one")
    assert q.worker()(Later()).run() == tenure.Report(completed=1)


def test_a_loss_is_learned_within_seconds_of_a_long_lease() -> None:
    held = tenure.lock("x", ttl=3600).acquire()
    tenure.lock("x").force_release("the test says so")
    until(held.lost.is_set)
    with pytest.raises(tenure.Lost, match="not held any more"):
        held.check()
    with pytest.raises(tenure.Lost, match="not held any more"):
        held.release()
    with pytest.raises(tenure.Lost, match="not held any more"):
        held.check()


def test_a_store_that_is_removed_is_a_loss() -> None:
    store = tenure.open("sqlite:gone.db")
    held = store.lock("x", ttl=3600).acquire()
    for suffix in ("", "-wal", "-shm"):
        os.remove(f"gone.db{suffix}")
    # A lease so long that no renewal tells the loss.
    assert held.lost.wait(PATIENCE)
    with pytest.raises(tenure.Lost):
        held.check()


@pytest.mark.parametrize("store", ["tenure", "tenure.open(os.environ['TENURE_STORE'])"])
def test_a_wait_for_the_command_around_this_process_is_refused(store: str) -> None:
    code = f"""
import asyncio, os, tenure
for _ in range(2):
    try:
        {store}.lock("x").acquire()
    except tenure.Deadlock:
        print("refused")
try:
    {store}.lock("x").acquire(timeout=0.05)
except tenure.Timeout:
    print("in vain")
with {store}.lock("y"):
    print("had another")
"""
    command = ["tenure", "run", "x", "--", sys.executable, "-c", code]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert printed.stdout.split("\n")[:-1] == ["refused", "refused", "in vain", "had another"]
