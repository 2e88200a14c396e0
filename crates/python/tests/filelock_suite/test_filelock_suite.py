"""filelock's own tests, run against `tenure.filelock`; see README.md beside this file."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Dict, List, Set

import pytest

HERE = Path(__file__).parent

#: The files that test what tenure replaces.
RUN = ["test_filelock.py", "test_async_filelock.py", "test_error.py", "test_subclass_options.py"]

#: Cases of locks that tenure does not replace, and of another system.
OTHERS = ["Soft", "soft", "Strict", "Lease", "Marker", "windows"]


def listed(name: str) -> List[str]:
    lines = (HERE / name).read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


@pytest.fixture(scope="session")
def source() -> Path:
    folder = os.environ.get("TENURE_TEST_FILELOCK_SOURCE")
    if not folder:
        pytest.fail("TENURE_TEST_FILELOCK_SOURCE must name filelock's source; scripts/test-python sets it")
    return Path(folder)


def test_every_file_is_run_or_listed(source: Path) -> None:
    there = {path.name for path in (source / "tests").glob("test_*.py")}
    assert there == {*RUN, *listed("not_run.txt")}


def test_the_suite_fails_where_it_is_expected_to(source: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    state = tmp_path / "state"
    state.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE),
        # The store of files outside of repositories.
        "XDG_STATE_HOME": str(state),
    }
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "replace_filelock", "-p", "no:cacheprovider"),
        *("--timeout", "60", "--tb", "no", "-k", " and ".join(f"not {word}" for word in OTHERS)),
        *(f"--junit-xml={report}", *(f"tests/{name}" for name in RUN)),
    ]
    subprocess.run(command, cwd=source, env=environment, stdout=subprocess.DEVNULL)
    outcomes = read(report)
    assert len(outcomes) > 500, "the suite did not run"
    failed = {name for name, outcome in outcomes.items() if outcome == "failed"}
    expected: Set[str] = set(listed("expected_failures.txt"))
    assert (failed - expected, expected - failed) == (set(), set())


def read(report: Path) -> Dict[str, str]:
    """How each case ended, by its name as pytest writes it."""
    outcomes = {}
    for case in xml.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rsplit('.', 1)[-1]}.py::{case.get('name')}"
        kinds = {child.tag for child in case}
        outcomes[name] = "failed" if kinds & {"failure", "error"} else "passed"
    return outcomes
