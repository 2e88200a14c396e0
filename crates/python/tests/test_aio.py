"""Locks for asyncio."""

from __future__ import annotations

import asyncio
import threading

import pytest
from helpers import until

import tenure


def waiting() -> int:
    return len(tenure.lock("x").status()["waiting"])


def test_tasks_exclude_each_other_and_threads() -> None:
    inside, most = [0], [0]

    def enter() -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        inside[0] -= 1

    async def work() -> None:
        for _ in range(10):
            async with tenure.aio.lock("x") as held:
                held.check()
                enter()
                await asyncio.sleep(0)

    def work_in_thread() -> None:
        for _ in range(10):
            with tenure.lock("x"):
                enter()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        thread = loop.run_in_executor(None, work_in_thread)
        await asyncio.gather(*(work() for _ in range(5)), thread)

    asyncio.run(main())
    assert most == [1]


def test_many_tasks_wait_on_few_threads() -> None:
    async def main() -> None:
        lock, order = tenure.aio.lock("x"), []

        async def work(number: int) -> None:
            async with lock:
                order.append(number)

        async with lock:
            tasks = [asyncio.ensure_future(work(number)) for number in range(100)]
            while waiting() < 100:
                await asyncio.sleep(0.01)
            assert threading.active_count() < 10
        await asyncio.gather(*tasks)
        assert sorted(order) == list(range(100))

    asyncio.run(main())


def test_a_cancelled_wait_leaves_nothing_queued_or_held() -> None:
    async def main() -> None:
        held = tenure.lock("x").acquire()
        for number in range(60):
            task = asyncio.ensure_future(tenure.aio.lock("x").acquire())
            # At every stage: before it began, while it is queued, just when it is granted.
            for _ in range(number % 4):
                await asyncio.sleep(0)
            if number % 3 == 0:
                held.release()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            if number % 3 == 0:
                held = await tenure.aio.lock("x", timeout=30).acquire()
        until(lambda: waiting() == 0)
        held.release()
        async with tenure.aio.lock("x", timeout=30):
            pass

    asyncio.run(main())


def test_timeouts_and_errors() -> None:
    async def main() -> None:
        async with tenure.aio.lock("x"):
            with pytest.raises(tenure.Timeout):
                await tenure.aio.lock("x", timeout=0.05).acquire()
            with pytest.raises(tenure.Busy) as busy:
                await tenure.aio.lock("x", blocking=False).acquire()
            assert busy.value.holder == tenure.default_store().label
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(tenure.aio.lock("x").acquire(), 0.05)
        with pytest.raises(tenure.InvalidRequest):
            await tenure.aio.lock("a/b.py").acquire()
        with pytest.raises(tenure.Lost):
            async with tenure.aio.lock("x"):
                tenure.lock("x").force_release("the test says so")

    asyncio.run(main())


def test_slots_paths_and_the_decorator() -> None:
    @tenure.aio.locked("backup", blocking=False, on_busy="skip")
    async def backup() -> str:
        return "done"

    async def main() -> None:
        async with tenure.aio.slots("gpu", 2) as first, tenure.aio.slots("gpu", 2) as second:
            assert {first.index, second.index} == {0, 1}
        async with tenure.aio.paths("src/**"):
            with pytest.raises(tenure.Busy):
                await tenure.aio.paths("src/a.py", blocking=False).acquire()
        assert await backup() == "done"
        async with tenure.aio.lock("backup"):
            assert await backup() is None

    asyncio.run(main())


def test_a_loop_that_was_closed_leaves_nothing_held() -> None:
    async def leave() -> None:
        asyncio.ensure_future(tenure.aio.lock("x").acquire())
        await asyncio.sleep(0)

    held = tenure.lock("x").acquire()
    asyncio.run(leave())
    held.release()
    with tenure.lock("x", timeout=30):
        pass
