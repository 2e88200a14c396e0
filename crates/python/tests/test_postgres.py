"""Everything as methods of a store in PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from typing import Iterator

import pytest
from helpers import Program, run, wait_for_exit
from test_fork import Busy, in_forked_process

import tenure


@pytest.fixture
def url() -> str:
    server = os.environ.get("TENURE_TEST_POSTGRES")
    if not server:
        pytest.skip("TENURE_TEST_POSTGRES names no server")
    # A schema of its own for each test.
    separator = "&" if "?" in server else "?"
    return f"{server}{separator}schema=python_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def store(url: str) -> Iterator[tenure.Store]:
    yield tenure.open(url)


def test_everything_as_methods(store: tenure.Store) -> None:
    with store.lock("deploy", timeout=5, operation="release") as held:
        held.confirm()
        with pytest.raises(tenure.Busy) as busy:
            store.lock("deploy", blocking=False).acquire()
        assert busy.value.operation == "release"
        assert [hold["resource"] for hold in store.status()] == ["deploy"]
    with store.slots("gpu", 2) as slot, store.paths("src/**", "docs/**"):
        assert slot.index in (0, 1)

    @store.locked("backup", blocking=False, on_busy="skip")
    def backup() -> str:
        return "done"

    assert backup() == "done"
    with store.update_json("n.json", default={"n": 0}) as data:
        data["n"] += 1
    store.append_line("log", "x")
    q = store.tasks()
    q.add_all([{"title": f"t{number}"} for number in range(6)])

    @q.worker(workers=3)
    def work(job: tenure.Job) -> str:
        return job.title

    assert work.run().completed == 6

    async def main() -> None:
        async with tenure.aio.lock("deploy", store=store):
            assert store.lock("deploy").try_acquire() is None

    asyncio.run(main())


def test_other_processes(store: tenure.Store, url: str) -> None:
    code = """
        import sys, tenure
        store = tenure.open(sys.argv[1])
        lock = store.lock("x")
        with lock:
            print("held")
            sys.stdin.readline()
    """
    with Program(code, url) as other:
        assert other.line() == "held"
        got = []
        thread = threading.Thread(target=lambda: got.append(store.lock("x").acquire()))
        thread.start()
        other.kill()
        thread.join()
        assert got[0].took_over
        got[0].release()
    assert run("import sys, tenure; print(tenure.open(sys.argv[1]).status())", url).strip() == "[]"


def test_forks_while_other_threads_lock(store: tenure.Store) -> None:
    held = store.lock("mine").acquire()

    def child() -> None:
        held.release()
        assert store.lock("mine").try_acquire() is None
        with store.lock(f"of {os.getpid()}"):
            pass

    with Busy(store):
        for _ in range(10):
            assert wait_for_exit(in_forked_process(child)) == 0
    held.confirm()
    held.release()
