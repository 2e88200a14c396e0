"""What file-based lock managers promise, by meaning: an operation, failing fast, waiting, taking over from
the dead, force with a reason, a status dictionary, a guard, a decorator."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from helpers import Program

import tenure


def test_an_operation_is_shown_to_everyone_who_waits() -> None:
    with tenure.lock("memory", operation="consolidation:nightly"):
        with pytest.raises(tenure.Timeout) as timeout:
            tenure.lock("memory", operation="heartbeat", timeout=0.1).acquire()
    assert timeout.value.operation == "consolidation:nightly"
    assert timeout.value.waited > 0


def test_failing_fast_answers_yes_or_no() -> None:
    quick, other = tenure.lock("memory", operation="quick-check"), tenure.lock("memory")
    assert quick.try_acquire()
    assert other.try_acquire() is None
    quick.release()
    assert other.try_acquire()
    other.release()


def test_the_status_dictionary() -> None:
    lock = tenure.lock("memory", operation="update:tasks")
    assert lock.status() == {
        "locked": False,
        "holder": None,
        "holders": [],
        "stale": [],
        "is_stale": False,
        "stale_reason": None,
        "waiting": [],
        "we_hold_it": False,
    }
    with lock:
        status = lock.status()
        assert status["locked"] and status["we_hold_it"]
        assert status["holder"]["operation"] == "update:tasks"
        assert status["holder"]["pid"] and status["holder"]["host"]
        assert not tenure.lock("memory").status()["we_hold_it"]
        json.dumps(status)


def test_two_that_start_at_once_take_turns(here: Path) -> None:
    code = """
        import json, tenure
        from pathlib import Path
        for _ in range(20):
            with tenure.lock("memory", operation="heartbeat"):
                path = Path("tasks.json")
                tasks = json.loads(path.read_text())
                tasks["version"] += 1
                path.write_text(json.dumps(tasks))
    """
    (here / "tasks.json").write_text('{"version": 11}')
    programs = [Program(code) for _ in range(2)]
    for program in programs:
        status, _, errors = program.end()
        assert status == 0, errors
    assert json.loads((here / "tasks.json").read_text()) == {"version": 51}


def test_a_crash_needs_no_cleaning_up() -> None:
    with Program("import os, tenure; tenure.lock('memory').acquire(); os.abort()") as program:
        program.end()
    status = tenure.lock("memory").status()
    assert not status["locked"] and len(status["stale"]) == 1
    with tenure.lock("memory", blocking=False) as held:
        assert len(held.took_over) == 1


def test_age_alone_does_not_end_a_live_holder() -> None:
    with tenure.lock("memory", ttl=0.5) as held:
        time.sleep(1.5)
        held.confirm()
        assert tenure.lock("memory").try_acquire() is None


def test_force_needs_a_reason_and_the_holder_learns_of_it() -> None:
    with pytest.raises(tenure.Lost):
        with tenure.lock("memory") as held:
            with pytest.raises(TypeError):
                tenure.lock("memory").force_release()  # type: ignore[call-arg]
            tenure.lock("memory").force_release("the operator saw that it hangs")
            with tenure.lock("memory", blocking=False) as next_one:
                assert next_one.token > held.token
                assert held.lost.wait(30)


def test_what_cannot_be_read_is_never_free(here: Path) -> None:
    with tenure.lock("memory"):
        pass
    tenure.use(None)
    database = here / ".tenure" / "tenure.db"
    for path in here.glob(".tenure/tenure.db*"):
        if path.is_file():
            path.write_bytes(b"not a database" * 500)
    assert database.exists()
    with pytest.raises(tenure.StoreError):
        tenure.lock("memory", blocking=False).acquire()


def test_the_decorator_and_the_guard_release_on_errors() -> None:
    @tenure.locked("memory", operation="update:tasks", timeout=1)
    def update() -> None:
        raise ValueError("inside")

    with pytest.raises(ValueError):
        update()
    with pytest.raises(KeyError), tenure.lock("memory"):
        raise KeyError("inside")
    assert not tenure.lock("memory").locked()
