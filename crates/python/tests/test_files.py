"""Files that many processes change."""

from __future__ import annotations

import json
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
