"""The drop-in for filelock, beside programs that still use filelock."""

from __future__ import annotations

import asyncio
import os
import pickle
from pathlib import Path

import filelock
import pytest
from helpers import Program, overlaps

import tenure
from tenure.filelock import AsyncFileLock, FileLock, Timeout


def test_both_exclude_each_other() -> None:
    ours, theirs = FileLock("f.lock", timeout=0), filelock.FileLock("f.lock", timeout=0)
    with ours:
        assert ours.is_locked
        with pytest.raises(filelock.Timeout):
            theirs.acquire()
        with ours:
            assert ours.lock_counter == 2
        assert ours.is_locked
    with theirs, pytest.raises(Timeout) as timeout:
        ours.acquire()
    assert timeout.value.lock_file == "f.lock"
    assert isinstance(pickle.loads(pickle.dumps(timeout.value)), TimeoutError)
    with ours:
        pass


def test_it_is_seen_as_a_lock_of_the_store(here: Path) -> None:
    with FileLock("f.lock"):
        holds = tenure.open().status()
        assert [hold["resource"] for hold in holds] == [f"filelock:{here}/f.lock"]
    assert tenure.open().status() == []


def test_asyncio() -> None:
    async def main() -> None:
        lock = AsyncFileLock("f.lock")
        async with lock:
            with pytest.raises(Timeout):
                await AsyncFileLock("f.lock").acquire(timeout=0.05)
            with pytest.raises(filelock.Timeout):
                filelock.FileLock("f.lock", timeout=0).acquire()
            waiting = asyncio.ensure_future(AsyncFileLock("f.lock").acquire())
            await asyncio.sleep(0.1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        async with await AsyncFileLock("f.lock").acquire(timeout=30):
            pass

    asyncio.run(main())


WORKER = """
    import os, sys
    sys.path.insert(0, sys.argv[1])
    from helpers import write_record
    if sys.argv[2] == "tenure":
        from tenure.filelock import FileLock
    else:
        from filelock import FileLock
    for _ in range(30):
        with FileLock("f.lock", poll_interval=0.001):
            number = int(open("number").read()) + 1
            open("number", "w").write(str(number))
            write_record("log", "enter", os.getpid(), number)
            write_record("log", "leave", os.getpid(), number)
"""


def test_processes_of_both_kinds_never_overlap(here: Path) -> None:
    (here / "number").write_text("0")
    folder = str(Path(__file__).parent)
    programs = [Program(WORKER, folder, kind) for kind in ("tenure", "filelock") * 2]
    for program in programs:
        status, _, errors = program.end()
        assert status == 0, errors
    records = (here / "log").read_text().splitlines()
    assert overlaps(records) == []
    assert len(records) == 2 * 30 * 4 and (here / "number").read_text() == "120"


def test_it_excludes_without_a_writable_home(tmp_path: Path) -> None:
    code = """
        import os, sys, tenure.filelock
        with tenure.filelock.FileLock(sys.argv[1]):
            print("held")
            input()
    """
    # No project is around it, so the store would be in the home.
    path = tmp_path / "elsewhere" / "f.lock"
    path.parent.mkdir()
    (tmp_path / ".tenure").rmdir()
    environment = {**os.environ, "HOME": "/proc/nowhere"}
    with Program(code, path, environment=environment) as homeless:
        assert homeless.line() == "held"
        for kind in (FileLock, filelock.FileLock):
            with pytest.raises(filelock.Timeout if kind is filelock.FileLock else Timeout):
                kind(path, timeout=0).acquire()
        homeless.tell()
        assert homeless.end()[0] == 0
