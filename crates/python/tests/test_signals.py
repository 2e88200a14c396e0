"""Ctrl-C ends every wait, and leaves nothing behind; waiting threads do not stop others."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest
from helpers import Program, until

import tenure

WAITS = {
    "lock": "tenure.lock('x').acquire()",
    "timeout": "tenure.lock('x').acquire(timeout=500)",
    "with": "\n    with tenure.lock('x'): pass",
    "asyncio": "asyncio.run(wait())",
    "claim": "next(tenure.Tasks().claim(timeout=None))",
    "update": "\n    with tenure.update_json('f.json'): pass",
    "append": "tenure.append_line('log', 'x')",
    "filelock": "tenure.filelock.FileLock('f.lock').acquire()",
    "worker": "worker.run(until_empty=False)",
    "lost": "tenure.lock('y').acquire().lost.wait()",
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_a_wait(wait: str, here: Path) -> None:
    code = f"""
import asyncio, sys, threading, tenure
async def wait():
    async with tenure.aio.lock('x'):
        pass
@tenure.Tasks().worker(workers=2)
def worker(job): pass
try:
    print("ready")
    {WAITS[wait]}
    print("it did not wait")
except KeyboardInterrupt:
    print("interrupted")
"""
    import fcntl

    with tenure.lock("x") as held, tenure.filelock.FileLock("f.lock"), open("log", "w") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        with tenure.update_json("f.json"), Program(code) as program:
            assert program.line() == "ready"
            if wait in ("lock", "timeout", "with", "asyncio"):
                until(lambda: tenure.lock("x").status()["waiting"])
            # One that comes before it waits ends it, too.
            program.signal(signal.SIGINT)
            assert program.line() == "interrupted"
            assert program.end()[0] == 0
        assert tenure.lock("x").status()["waiting"] == []
        held.check()


def test_a_thread_that_waits_lets_others_run() -> None:
    lock, got = tenure.lock("x"), threading.Event()
    held = lock.acquire()

    def wait() -> None:
        lock.acquire().release()
        got.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    until(lambda: lock.status()["waiting"])
    assert not got.is_set()
    held.release()
    waiter.join()
    assert got.is_set()


def test_a_signal_handler_that_does_not_raise_lets_the_wait_go_on() -> None:
    code = """
        import signal, tenure
        signal.signal(signal.SIGUSR1, lambda *_: print("handled"))
        print("ready")
        with tenure.lock("x"):
            print("held")
    """
    held = tenure.lock("x").acquire()
    with Program(code) as program:
        assert program.line() == "ready"
        until(lambda: tenure.lock("x").status()["waiting"])
        program.signal(signal.SIGUSR1)
        assert program.line() == "handled"
        held.release()
        assert program.line() == "held"
