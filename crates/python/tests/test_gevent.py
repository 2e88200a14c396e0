"""Where gevent replaced threads, a wait lets other greenlets run."""

from __future__ import annotations

import fcntl
import signal
from pathlib import Path

from helpers import Program, run, serving

import tenure

PATCHED = "from gevent import monkey\nmonkey.patch_all()\n"


def test_greenlets_wait_beside_each_other(here: Path) -> None:
    printed = run(
        PATCHED
        + """
import gevent, tenure
from tenure.filelock import FileLock
inside, done = [0], [0]
def work(make):
    for _ in range(3):
        with make():
            inside[0] += 1
            assert inside[0] == 1
            gevent.sleep(0.002)
            inside[0] -= 1
    done[0] += 1
for make in (lambda: tenure.lock("x"), lambda: FileLock("f.lock", poll_interval=0.002)):
    gevent.joinall([gevent.spawn(work, make) for _ in range(20)], raise_error=True)
# One that is killed while it waits leaves nothing behind.
with tenure.lock("x") as held:
    waiting = gevent.spawn(tenure.lock("x").acquire)
    while not tenure.lock("x").status()["waiting"]:
        gevent.sleep(0.01)
    waiting.kill()
    while tenure.lock("x").status()["waiting"]:
        gevent.sleep(0.01)
    losing = gevent.spawn(held.lost.wait)
    gevent.sleep(0)
    tenure.lock("x").force_release("the test says so")
    assert losing.get(timeout=60)
    try:
        held.release()
    except tenure.Lost:
        print(done)
"""
    )
    assert printed.strip() == "[40]"


WAITS = """
import signal, subprocess, sys, gevent, tenure
q = tenure.Tasks()

def update():
    with tenure.update_json("n.json") as data:
        data["n"] = 1

@q.worker()
def work(job):
    return job.title

calls = [
    update,
    lambda: tenure.append_line("log", "x"),
    lambda: next(q.claim(timeout=None)).complete(),
    lambda: work.run(until_empty=False),
    lambda: [job.complete() for job in q.claim(until_empty=True)],
]
waiting = [gevent.spawn(call) for call in calls]
for _ in range(20):
    gevent.sleep(0.01)
assert not any(one.dead for one in waiting)
print("others run")
input()
# It is free now.
gevent.joinall(waiting[:2], raise_error=True)
while not waiting[2].dead:
    q.add("one more")
    gevent.sleep(0.05)
work.stop()
gevent.joinall(waiting, raise_error=True)
print(list(q.counts()))
"""


def test_whatever_waits_lets_others_run(here: Path) -> None:
    q = tenure.Tasks()
    q.add("held")
    job = next(q.claim())
    with open("log", "w") as log, Program(PATCHED + WAITS) as program:
        fcntl.flock(log, fcntl.LOCK_EX)
        with tenure.update_json("n.json"):
            assert program.line() == "others run"
        fcntl.flock(log, fcntl.LOCK_UN)
        job.complete()
        program.tell()
        assert program.line() == "['completed']"
        assert program.end()[0] == 0


UNANSWERED = """
import sys, gevent, tenure
store = tenure.open(sys.argv[1])
store.tasks().add("one", section="s")
held = store.lock("x").acquire()
broken = store.lock("z").acquire()
jobs = store.tasks().claim()
job = next(jobs)
update = store.update_json("n.json")
update.__enter__()
print("ready")
input()
calls = [
    held.confirm,
    store.status,
    store.lock("x").status,
    lambda: job.note("half done"),
    job.complete,
    lambda: update.__exit__(None, None, None),
    store.lock("y").acquire,
    lambda: store.tasks().add("two", section="t"),
    store.tasks().list,
    lambda: store.tasks().get(job.id),
    store.tasks().counts,
    lambda: store.tasks().note(job.id, "noted"),
    lambda: store.verify("x", held.token),
    lambda: store.lock("z").force_release("the test says so"),
    lambda: tenure.open(sys.argv[1]).status(),
]
waiting = [gevent.spawn(call) for call in calls]
for _ in range(20):
    gevent.sleep(0.01)
assert not any(one.dead for one in waiting)
print("others run")
input()
# The server answers again.
gevent.joinall(waiting, raise_error=True)
jobs.close()
print(store.tasks().counts())
"""


def test_what_a_frozen_server_does_not_answer_lets_others_run(here: Path) -> None:
    with serving() as (server, url), Program(PATCHED + UNANSWERED, url) as program:
        assert program.line() == "ready"
        server.send_signal(signal.SIGSTOP)
        program.tell()
        assert program.line() == "others run"
        server.send_signal(signal.SIGCONT)
        program.tell()
        assert program.line() == "{'completed': 1, 'pending': 1}"
        assert program.end()[0] == 0
    assert (here / "n.json").read_text() == "{}\n"
