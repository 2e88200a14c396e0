"""Files that many processes change."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from helpers import Program, run

import tenure


def test_an_update_is_read_changed_and_replaced(here: Path) -> None:
    with tenure.update_json("n.json", default={"n": 0}) as data:
        data["n"] += 1
    with tenure.update_json("n.json", backup=".bak") as data:
        data["n"] += 1
        with pytest.raises(tenure.Busy) as busy, tenure.update_json("n.json", timeout=0):
            pass
        assert busy.value.resource == "path:n.json"
    assert json.loads((here / "n.json").read_text()) == {"n": 2}
    assert json.loads((here / "n.json.bak").read_text()) == {"n": 1}


def test_an_update_that_fails_changes_nothing(here: Path) -> None:
    (here / "n.json").write_text('{"n": 1}')
    with pytest.raises(KeyError), tenure.update_json("n.json") as data:
        data["n"] = 2
        raise KeyError("inside")
    with pytest.raises(TypeError), tenure.update_json("n.json") as data:
        data["n"] = object()
    with pytest.raises(tenure.FileChanged), tenure.update_json("n.json") as data:
        (here / "n.json").write_text('{"n": 3}')
        data["n"] = 4
    with pytest.raises(tenure.Lost), tenure.update_json("n.json") as data:
        for hold in tenure.Store.status(tenure.open()):
            store = tenure.open()
            store.lock(hold["resource"]).force_release("the test says so")
        data["n"] = 5
    assert (here / "n.json").read_text() == '{"n": 3}'
    (here / "bad.json").write_text("{")
    with pytest.raises(tenure.FileError, match="not JSON"), tenure.update_json("bad.json"):
        pass
    with pytest.raises(OSError), tenure.update_json("nowhere/n.json"):
        pass
    # Nothing stays held.
    with tenure.update_json("n.json", timeout=0) as data:
        assert data == {"n": 3}


def test_a_default_is_never_changed(here: Path) -> None:
    default = {"n": [0]}
    with pytest.raises(KeyError), tenure.update_json("n.json", default=default) as data:
        data["n"].append(1)
        raise KeyError("inside")
    with tenure.update_json("n.json", default=default) as data:
        data["n"].append(2)
    assert default == {"n": [0]}
    assert json.loads((here / "n.json").read_text()) == {"n": [0, 2]}


def test_no_update_of_many_processes_is_lost(here: Path) -> None:
    code = """
        import tenure
        for number in range(25):
            with tenure.update_json("n.json", default={"n": 0}) as data:
                data["n"] += 1
            tenure.append_line("log.jsonl", {"number": number, "text": "é" * 2000})
    """
    programs = [Program(code) for _ in range(4)]
    for program in programs:
        status, _, errors = program.end()
        assert status == 0, errors
    assert json.loads((here / "n.json").read_text()) == {"n": 100}
    lines = (here / "log.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["number"] for line in lines) == sorted(list(range(25)) * 4)


@pytest.fixture
def homeless(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder outside of projects, for a process whose home cannot be written to."""
    (here / ".tenure").rmdir()
    monkeypatch.setenv("HOME", "/proc/nowhere")
    folder = here / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_home_is_not_needed(homeless: Path) -> None:
    for name in ("n.json", "ä" * 120):
        with tenure.update_json(name, default={"n": 0}, backup=".bak") as data:
            data["n"] += 1
            with pytest.raises(tenure.Deadlock), tenure.update_json(name):
                pass
            with pytest.raises(tenure.Busy), tenure.update_json(name, timeout=0):
                pass
            with tenure.update_json("other.json"):
                pass
            tenure.append_line("log", "x")
            with pytest.raises(tenure.StoreUnavailable):
                tenure.lock("x").acquire()
        assert json.loads((homeless / name).read_text()) == {"n": 1}
    with pytest.raises(KeyError), tenure.update_json("n.json") as data:
        raise KeyError("inside")
    # No lock files are left.
    assert sorted(path.name for path in homeless.iterdir()) == [
        "log",
        "n.json",
        "other.json",
        "ä" * 120,
    ]


def test_processes_without_a_home_exclude_each_other(homeless: Path) -> None:
    code = """
        import threading, tenure
        def work():
            for number in range(25):
                with tenure.update_json("n.json", default={"n": 0}) as data:
                    data["n"] += 1
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    """
    programs = [Program(code) for _ in range(4)]
    for program in programs:
        status, _, errors = program.end()
        assert (status, errors) == (0, "")
    assert json.loads((homeless / "n.json").read_text()) == {"n": 200}
    assert [path.name for path in homeless.iterdir()] == ["n.json"]
    code = """
        import tenure
        with tenure.update_json("n.json") as data:
            print("held")
            input()
            data["n"] = 0
    """
    with Program(code) as other:
        assert other.line() == "held"
        for kind, timeout in ((tenure.Busy, 0), (tenure.Timeout, 0.05)):
            with pytest.raises(kind, match="another process"):
                tenure.update_json("n.json", timeout=timeout).__enter__()
        other.kill()
    # What a killed process leaves is in nobody's way.
    with tenure.update_json("n.json") as data:
        assert data == {"n": 200}
    assert [path.name for path in homeless.iterdir()] == ["n.json"]


def test_with_and_without_a_home_no_update_is_lost(homeless: Path, tmp_path: Path) -> None:
    code = """
        import tenure
        with tenure.update_json("n.json", default={"n": 0}) as data:
            data["n"] += 1
    """
    environment = {**os.environ, "HOME": str(tmp_path / "home")}
    with pytest.raises(tenure.FileChanged):
        with tenure.update_json("n.json", default={"n": 0}) as data:
            with Program(code, environment=environment) as other:
                assert other.end()[0] == 0
            data["n"] += 1
    assert json.loads((homeless / "n.json").read_text()) == {"n": 1}


def test_a_store_that_was_chosen_is_not_replaced(
    homeless: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_STORE", "sqlite:/proc/nowhere/store.db")
    with pytest.raises(tenure.StoreUnavailable), tenure.update_json("n.json"):
        pass
    # Nor is that of a project.
    monkeypatch.delenv("TENURE_STORE")
    (homeless / ".tenure" / "tenure.db").mkdir(parents=True)
    with pytest.raises(tenure.StoreError), tenure.update_json("n.json"):
        pass


def test_lines_are_whole(here: Path) -> None:
    tenure.append_line("log", "a text")
    tenure.append_line("log", {"b": [1, "é"]}, sync=True)
    (here / "log").open("a").write("unfinished")
    tenure.append_line(here / "log", "next")
    assert (here / "log").read_text() == 'a text\n{"b": [1, "é"]}\nunfinished\nnext\n'
    with pytest.raises(ValueError):
        tenure.append_line("log", "two\nlines")
    with pytest.raises(tenure.FileError):
        tenure.append_line("nowhere/log", "x")
    import fcntl

    with (here / "log").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(tenure.Busy):
            tenure.append_line("log", "x", timeout=0)


def test_a_file_has_one_name_from_every_folder_and_for_the_command(here: Path) -> None:
    (here / "folder").mkdir()
    (here / "link.json").symlink_to("n.json")
    with tenure.update_json("n.json"):
        for path in ("link.json", "folder/../n.json", here / "n.json"):
            with pytest.raises(tenure.Busy), tenure.update_json(path, timeout=0):
                pass
        code = "import subprocess, sys; print(subprocess.run(sys.argv[1:]).returncode)"
        assert run(code, "tenure", "update", "-n", "n.json", "--", "cat").strip() == "6"
