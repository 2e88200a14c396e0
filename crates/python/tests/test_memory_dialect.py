"""A folder of lock files that other programs share, by `file:FOLDER?dialect=memory`."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest
from helpers import Program, until

import tenure


@pytest.fixture
def store(here: Path, monkeypatch: pytest.MonkeyPatch) -> tenure.Store:
    (here / "memory").mkdir()
    monkeypatch.setenv("CLAWDBOT_SESSION_ID", "session-7")
    return tenure.open("file:memory?dialect=memory")


def test_the_session_is_the_label_unless_one_is_chosen(
    store: tenure.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.label == "session-7"
    monkeypatch.setenv("TENURE_STORE", "file:memory?dialect=memory")
    assert tenure.open().label == "session-7"
    monkeypatch.setenv("TENURE_AGENT", "alice")
    assert tenure.open("file:memory?dialect=memory").label == "alice"
    assert tenure.open("file:memory?dialect=memory", label="bob").label == "bob"


def test_files_are_changed_under_the_lock_of_the_folder(store: tenure.Store) -> None:
    held = store.lock("memory", operation="tidy").acquire()
    for change in (
        lambda: store.append_line("memory/log", "x", timeout=0),
        lambda: store.update_json("memory/n.json", timeout=0).__enter__(),
    ):
        refused = []

        def attempt(change: object = change) -> None:
            with pytest.raises(tenure.Timeout) as busy:
                change()  # type: ignore[operator]
            refused.append(busy.value.operation)

        # Another thread: this one has the lock already.
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
        assert refused == ["tidy"]
    store.append_line("memory/log", "own")
    held.release()
    with store.update_json("memory/n.json", default={"n": 1}):
        assert store.lock("memory").locked()
    assert json.loads(Path("memory/n.json").read_text()) == {"n": 1}
    assert Path("memory/log").read_text() == "own\n"


def test_a_change_of_a_file_does_not_wait_for_its_own_lock(store: tenure.Store) -> None:
    with store.update_json("memory/n.json") as data:
        data["n"] = 1
        # The folder's lock is held already.
        store.append_line("memory/log", "own")
        with pytest.raises(tenure.Deadlock):
            store.lock("memory").acquire()
        with pytest.raises(tenure.Deadlock), store.update_json("memory/m.json"):
            pass
        with store.lock("memory", reentrant=True) as held:
            held.check()
    assert not store.lock("memory").locked()
    assert json.loads(Path("memory/n.json").read_text()) == {"n": 1}
    assert Path("memory/log").read_text() == "own\n"


def test_what_a_dead_holder_left_is_stale_with_a_reason(store: tenure.Store) -> None:
    code = """
        import tenure
        held = tenure.open("file:memory?dialect=memory").lock("memory").acquire()
        print("held")
        input()
    """
    with Program(code) as program:
        assert program.line() == "held"
        status = store.lock("memory").status()
        assert (status["is_stale"], status["stale_reason"]) == (False, None)
        program.kill()
        until(lambda: store.lock("memory").status()["is_stale"])
        assert store.lock("memory").status()["stale_reason"] == (
            f"process {program.pid} on {socket.gethostname()} is dead"
        )


def test_settings_choose_the_folder_whose_lock_a_line_needs(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "memory").mkdir()
    config = here / "home" / ".config" / "tenure"
    config.mkdir(parents=True)
    url = f"file:{here}/memory?dialect=memory"
    (config / "config.yaml").write_text(f"store: {url}\n")
    with tenure.open(url, label="other").lock("memory"):
        refused = []

        def attempt() -> None:
            with pytest.raises(tenure.Timeout):
                tenure.append_line("memory/log", "x", timeout=0)
            refused.append(True)

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
        assert refused
    tenure.append_line("memory/log", "own")
    assert Path("memory/log").read_text() == "own\n"
