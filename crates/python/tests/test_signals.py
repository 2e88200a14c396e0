"""Ctrl-C ends every wait, and leaves nothing behind; waiting threads do not stop others."""

from __future__ import annotations

import select
import signal
import subprocess
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from helpers import Program, run, until

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


@pytest.mark.parametrize("wait", ["held.release()", "held.lost.wait()", "held.confirm()"])
def test_ctrl_c_ends_what_a_frozen_server_does_not_answer(wait: str, here: Path) -> None:
    code = f"""
import sys, tenure
held = tenure.open(sys.argv[1]).lock("x", ttl=3600).acquire()
try:
    print("ready")
    input()
    {wait}
    print("it did not wait")
except KeyboardInterrupt:
    print("interrupted")
"""
    server = subprocess.Popen(
        ["tenure", "serve", "--listen", "127.0.0.1:0", "--no-auth"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert server.stdout is not None
        url = next(word for line in server.stdout for word in line.split() if "http://" in word)
        with Program(code, url.rstrip("/")) as program:
            assert program.line() == "ready"
            server.send_signal(signal.SIGSTOP)
            program.tell()
            # It may not wait yet; then it waits after the signal, and the next one ends it.
            until(lambda: is_interrupted(program))
            assert program.line() == "interrupted"
            assert program.process.wait(60) == 0
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def is_interrupted(program: Program) -> bool:
    """Presses Ctrl-C, and says whether the program says something then."""
    program.signal(signal.SIGINT)
    output: Any = program.process.stdout
    return bool(select.select([output], [], [], 0.2)[0])


def test_an_interrupt_leaves_nothing_held() -> None:
    code = """
        import random, signal, time, tenure
        lock = tenure.lock("x")
        for number in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00005, 0.004))
                while True:
                    with lock:
                        pass
            except KeyboardInterrupt:
                pass
            with tenure.open().lock("x", timeout=20):
                pass
    """
    start = "import signal\nsignal.signal(signal.SIGALRM, signal.default_int_handler)\n"
    run(start + textwrap.dedent(code))
