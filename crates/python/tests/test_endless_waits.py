"""Waits that would never end are refused, or warned of; a lock can be reentrant."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import AsyncIterator, Iterator

import pytest
from helpers import Program, until

import tenure


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
    with pytest.raises(tenure.TenureError):
        held.confirm()
    with pytest.raises(tenure.Lost):
        held.check()
