"""Forked processes own nothing of their parent's, and never hang, also while other threads lock."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from pathlib import Path
from typing import Any, Callable, List

import pytest
from helpers import Program, until, wait_for_exit

import tenure
from tenure.filelock import FileLock

#: So many forks while other threads lock; none may hang.
FORKS = 60


def in_forked_process(act: Callable[[], None]) -> int:
    """Runs this in a forked process; its number."""
    pid = os.fork()
    if pid:
        return pid
    try:
        act()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


class Busy:
    """Threads that lock, wait, write durably and use asyncio all the time."""

    def __init__(self, store: tenure.Store) -> None:
        self.store = store
        self.stop = threading.Event()
        self.rounds = [0, 0, 0, 0]
        works: List[Callable[[int], None]] = [self.lock, self.lock, self.tasks, self.asynchronous]
        self.threads = [
            threading.Thread(target=work, args=(number,)) for number, work in enumerate(works)
        ]

    def lock(self, number: int) -> None:
        while not self.stop.is_set():
            with self.store.lock("shared"):
                self.rounds[number] += 1

    def tasks(self, number: int) -> None:
        tasks = self.store.tasks()
        while not self.stop.is_set():
            tasks.add("one")
            for job in tasks.claim():
                job.complete()
            self.rounds[number] += 1

    def asynchronous(self, number: int) -> None:
        import asyncio

        async def work() -> None:
            while not self.stop.is_set():
                async with tenure.aio.lock("shared", store=self.store):
                    self.rounds[number] += 1

        asyncio.run(work())

    def __enter__(self) -> Busy:
        for thread in self.threads:
            thread.start()
        until(lambda: all(self.rounds))
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()


def test_forks_while_other_threads_lock_never_hang() -> None:
    store = tenure.default_store()
    held = store.lock("mine").acquire()
    job = None
    store.tasks().add("parent's")
    for job in store.tasks().claim(until_empty=False):
        break
    assert job is not None

    def child() -> None:
        signal.alarm(50)
        assert held.lost.is_set(), "it is the parent's"
        held.release()
        with pytest.raises(tenure.Lost):
            held.check()
        with pytest.raises(tenure.Lost):
            job.complete()
        assert store.lock("mine").try_acquire() is None
        # The inherited store, and a fresh one.
        for own in (store, tenure.open(store.url)):
            lock = own.lock(f"of {os.getpid()}")
            with lock as mine:
                mine.confirm()
                holder = lock.status()["holder"]
                assert holder["pid"] == os.getpid()
                assert f":{os.getpid()}-" in holder["holder"]

    with Busy(store) as busy:
        for _ in range(FORKS):
            assert wait_for_exit(in_forked_process(child)) == 0
            held.check()
        before = list(busy.rounds)
        # The parent's threads go on.
        until(lambda: all(now > then for now, then in zip(busy.rounds, before)))
    held.confirm()
    held.release()
    job.complete()


def test_a_block_that_a_child_leaves_releases_nothing() -> None:
    lock = tenure.lock("x")
    pid = 0
    with lock as held:
        pid = os.fork()
        if not pid:
            status = 1
            try:
                lock.release()
                assert tenure.lock("x").try_acquire() is None
                status = 0
            finally:
                os._exit(status)
        assert wait_for_exit(pid) == 0
        held.confirm()


def test_a_child_that_outlives_its_parent_keeps_nothing_of_it() -> None:
    code = """
        import os, sys, threading, time, tenure
        held = tenure.lock("x").acquire()
        stop = threading.Event()
        def work():
            while not stop.is_set():
                with tenure.lock("y"):
                    pass
        threading.Thread(target=work, daemon=True).start()
        for _ in range(5):
            if os.fork() == 0:
                # They hold copies of all open files until they end.
                os.close(1)
                time.sleep(600)
                os._exit(0)
        print("ready")
        sys.stdin.readline()
    """
    with Program(code) as program:
        assert program.line() == "ready"
        children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
        assert len(children) == 5
        try:
            program.process.kill()
            program.process.wait()
            with tenure.lock("x"), tenure.lock("y"):
                pass
        finally:
            for child in children:
                os.kill(int(child), signal.SIGKILL)


def test_a_waiting_thread_does_not_delay_a_fork() -> None:
    with tenure.lock("x"):
        waiter = threading.Thread(target=lambda: tenure.lock("x").acquire().release())
        waiter.start()
        until(lambda: tenure.lock("x").status()["waiting"])

        def child() -> None:
            with tenure.lock("y"):
                pass
            assert tenure.lock("x").try_acquire() is None

        assert wait_for_exit(in_forked_process(child)) == 0
    waiter.join()


def test_a_file_lock_in_a_forked_process_is_the_parents(here: Path) -> None:
    lock = FileLock("f.lock")
    with lock:

        def child() -> None:
            assert not lock.is_locked
            lock.release(force=True)
            with pytest.raises(RuntimeError, match="fork"):
                lock.acquire(timeout=0)
            other = FileLock("f.lock")
            with pytest.raises(TimeoutError):
                other.acquire(timeout=0)

        assert wait_for_exit(in_forked_process(child)) == 0
        assert lock.is_locked
        with pytest.raises(TimeoutError):
            FileLock("f.lock").acquire(timeout=0)


def count_up(number: int) -> int:
    """The work of a process of a pool."""
    for _ in range(10):
        with tenure.update_json("n.json", default={"n": 0}) as data:
            data["n"] += 1
    with tenure.lock("pool") as held:
        held.check()
    return os.getpid()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_multiprocessing(method: str) -> None:
    import json

    store = tenure.default_store()
    with Busy(store):
        context: Any = multiprocessing.get_context(method)
        with context.Pool(3) as pool:
            pids = pool.map(count_up, range(6), chunksize=1)
            pool.close()
            pool.join()
    assert os.getpid() not in pids
    assert json.loads(Path("n.json").read_text()) == {"n": 60}
