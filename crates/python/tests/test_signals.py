"""Ctrl-C ends every wait, and leaves nothing behind; waiting threads do not stop others."""

from __future__ import annotations

import select
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from helpers import Program, run, serving, until

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


# What is done before the server freezes, and after.
UNANSWERED = {
    "release": ("held = lock.acquire()", "held.release()"),
    "lost": ("held = lock.acquire()", "held.lost.wait()"),
    "confirm": ("held = lock.acquire()", "held.confirm()"),
    "finish": ("job = next(store.tasks().claim())", "job.complete()"),
    "leave": ("jobs = store.tasks().claim(); next(jobs).complete()", "jobs.close()"),
    "leave a batch": ("jobs = store.tasks().claim(batch=2); job = next(jobs)", "jobs.close()"),
    "replace": ("update.__enter__()", "update.__exit__(None, None, None)"),
    "leave as it is": ("update.__enter__()", "update.__exit__(ValueError, ValueError(), None)"),
    "status": ("", "store.status()"),
    "note": ("job = next(store.tasks().claim())", "job.note('half done')"),
}


@pytest.mark.parametrize("wait", UNANSWERED)
def test_ctrl_c_ends_what_a_frozen_server_does_not_answer(wait: str, here: Path) -> None:
    before, after = UNANSWERED[wait]
    code = f"""
import signal, sys, tenure
# The first one that comes ends the wait, nothing before it.
signal.signal(signal.SIGINT, signal.SIG_IGN)
store = tenure.open(sys.argv[1])
lock, update = store.lock("x", ttl=3600), store.update_json("n.json", ttl=3600)
store.tasks().add_all([{{"title": "x", "section": section}} for section in ("s", "s", "t")])
{before}
try:
    print("ready")
    input()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    {after}
    print("it did not wait")
except KeyboardInterrupt:
    print("interrupted")
"""
    with serving() as (server, url), Program(code, url) as program:
        assert program.line() == "ready"
        server.send_signal(signal.SIGSTOP)
        program.tell()
        # It may not wait yet.
        until(lambda: is_interrupted(program))
        assert program.line() == "interrupted"
        assert program.process.wait(60) == 0
        assert list(here.glob("*n.json*")) == []


def is_interrupted(program: Program) -> bool:
    """Presses Ctrl-C, and says whether the program says something then."""
    program.signal(signal.SIGINT)
    output: Any = program.process.stdout
    return bool(select.select([output], [], [], 0.2)[0])


# What is interrupted, and how it is taken afterwards.
BLOCKS = {
    "lock": ("lock", "tenure.open().lock('x', timeout=20)"),
    "filelock": ("filelock", "FileLock('f.lock', timeout=20)"),
    "update": ("update", "tenure.update_json('n.json', timeout=20)"),
}


@pytest.mark.parametrize("block", BLOCKS)
def test_an_interrupt_leaves_nothing_held(block: str) -> None:
    interrupted, afterwards = BLOCKS[block]
    run(f"""
import random, signal, tenure
from tenure.filelock import FileLock
signal.signal(signal.SIGALRM, signal.default_int_handler)
lock, filelock, update = tenure.lock("x"), FileLock("f.lock"), tenure.update_json("n.json")
for number in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00005, 0.004))
        while True:
            with {interrupted}:
                pass
    except KeyboardInterrupt:
        pass
    with {afterwards}:
        pass
""")
