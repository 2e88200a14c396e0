"""Real processes: killed, stopped, ended in every way."""

from __future__ import annotations

import os
import random
import signal
import threading
from pathlib import Path

import pytest
from helpers import Program, counts, overlaps, run, until, write_record

import tenure

HOLD = """
    import sys, tenure
    ttl = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    held = tenure.lock("x", ttl=ttl).acquire()
    print(held.token)
    for line in sys.stdin:
        if line.strip() == "end":
            break
        try:
            held.check()
            held.confirm()
            print("held")
        except tenure.Lost as error:
            print("lost")
"""


def test_another_process_excludes_and_is_excluded() -> None:
    with Program(HOLD) as other:
        token = int(other.line())
        with pytest.raises(tenure.Busy) as busy:
            tenure.lock("x", blocking=False).acquire()
        assert busy.value.holders[0]["pid"] == other.pid
        other.tell()
        assert other.line() == "held"
        other.tell("end")
        # It ends without a release: nothing is held beyond its life.
        with tenure.lock("x") as held:
            assert held.token > token


def test_a_killed_holder_is_replaced() -> None:
    with Program(HOLD) as other:
        other.line()
        waiter = tenure.lock("x")
        got = []
        thread = threading.Thread(target=lambda: got.append(waiter.acquire()))
        thread.start()
        until(lambda: tenure.lock("x").status()["waiting"])
        other.kill()
        thread.join()
        assert len(got[0].took_over) == 1
        got[0].release()


def test_a_stopped_holder_is_fenced_off() -> None:
    with Program(HOLD, 1) as other:
        old = int(other.line())
        other.signal(signal.SIGSTOP)
        with tenure.lock("x") as held:
            assert held.token > old
            other.signal(signal.SIGCONT)
            other.tell()
            assert other.line() == "lost"
            held.confirm()
        assert not tenure.default_store().verify("x", old)


def test_a_waiter_that_is_killed_leaves_the_queue() -> None:
    with tenure.lock("x") as held:
        with Program("import tenure; tenure.lock('x').acquire()") as waiter:
            until(lambda: tenure.lock("x").status()["waiting"])
            waiter.kill()
        until(lambda: all(one["is_dead"] for one in tenure.lock("x").status()["waiting"]))
        held.check()
    with tenure.lock("x"):
        pass


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param("os._exit(0)", id="os._exit"),
        pytest.param("sys.exit(0)", id="sys.exit"),
        pytest.param("raise KeyError('x')", id="exception"),
        pytest.param("os.kill(os.getpid(), 15)", id="SIGTERM"),
        pytest.param("os.execv('/bin/true', ['true'])", id="exec"),
    ],
)
def test_however_a_process_ends_nothing_stays_held(ending: str) -> None:
    code = f"""
        import os, sys, threading, tenure
        held = tenure.lock("x").acquire()
        # Also while other threads wait, hold and use asyncio.
        threading.Thread(target=lambda: tenure.lock("x").acquire(), daemon=True).start()
        mine = tenure.lock("y")
        threading.Thread(target=mine.acquire, daemon=True).start()
        q = tenure.Tasks()
        q.add("one")
        jobs = q.claim()
        job = next(jobs)
        print("ready")
        sys.stdin.readline()
        {ending}
    """
    with Program(code) as program:
        assert program.line() == "ready"
        program.tell()
        program.end()
    with tenure.lock("x"), tenure.lock("y"):
        pass
    assert [job.complete().status for job in tenure.Tasks().claim(until_empty=True)] == ["completed"]


def test_the_check_of_exclusion_finds_it_missing() -> None:
    good = ["enter 1 1", "leave 1 1", "enter 2 2", "killing 2", "enter 1 3", "leave 1 3"]
    assert overlaps(good) == []
    assert overlaps(["enter 1 1", "enter 2 2"]) != []
    assert overlaps(["enter 1 1", "leave 1 1", "enter 2 1"]) != []
    assert overlaps(["enter 1 1", "enter 2 2", "killing 1"]) != []
    assert overlaps(["enter 1 1", "leave 2 1"]) != []


WORKER = """
    import os, sys, threading, asyncio, time
    sys.path.insert(0, sys.argv[1])
    from helpers import write_record
    import tenure

    stop = threading.Event()

    def record(held):
        write_record("log", "enter", os.getpid(), held.token)
        time.sleep(0.001)
        write_record("log", "leave", os.getpid(), held.token)

    def work():
        while not stop.is_set():
            with tenure.lock("x") as held:
                record(held)

    async def work_async():
        while not stop.is_set():
            async with tenure.aio.lock("x") as held:
                record(held)

    threads = [threading.Thread(target=work) for _ in range(2)]
    threads.append(threading.Thread(target=lambda: asyncio.run(work_async())))
    for thread in threads:
        thread.start()
    print("ready")
    sys.stdin.readline()
    stop.set()
    for thread in threads:
        thread.join()
"""


def test_exclusion_of_threads_and_asyncio_of_killed_and_stopped_processes(here: Path) -> None:
    chance = random.Random(7)
    folder = str(Path(__file__).parent)
    programs = [Program(WORKER, folder) for _ in range(3)]
    try:
        for program in programs:
            program.line()
        for _ in range(12):
            victim = chance.randrange(len(programs))
            before = len((here / "log").read_text().splitlines()) if (here / "log").exists() else 0
            if chance.random() < 0.5:
                programs[victim].signal(signal.SIGSTOP)
                until(lambda: (here / "log").exists())
                programs[victim].signal(signal.SIGCONT)
            else:
                write_record("log", "killing", programs[victim].pid)
                programs[victim].kill()
                programs[victim].process.communicate()
                programs[victim] = Program(WORKER, folder)
                programs[victim].line()
            until(lambda: len((here / "log").read_text().splitlines()) > before + 10)
        for program in programs:
            program.tell()
        for program in programs:
            assert program.end()[0] == 0
    finally:
        for program in programs:
            program.__exit__()
    records = (here / "log").read_text().splitlines()
    assert overlaps(records) == []
    assert counts(records)["killing"] > 0 and counts(records)["leave"] > 50


def test_the_command_sees_what_python_holds() -> None:
    import subprocess

    with tenure.lock("deploy", operation="from Python"):
        shown = subprocess.run(["tenure", "locks"], capture_output=True, text=True, check=True)
        assert "from Python" in shown.stdout
        busy = subprocess.run(["tenure", "run", "-n", "deploy", "--", "true"], capture_output=True)
        assert busy.returncode == 6


def test_the_default_store_is_opened_in_each_process() -> None:
    assert run("import tenure; print(tenure.default_store().url)").strip() == (
        tenure.default_store().url
    )
    assert os.getpid() == int(tenure.default_store().label.rsplit(":", 1)[1].split("-")[0])
