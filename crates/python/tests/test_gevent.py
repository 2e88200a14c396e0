"""Where gevent replaced threads, a wait lets other greenlets run."""

from __future__ import annotations

from pathlib import Path

from helpers import run

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
