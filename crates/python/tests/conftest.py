"""Each test has a folder with a store of its own, which is the current folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

import tenure

sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ["tenure.testing"]

collect_ignore_glob = ["filelock_suite/replace_filelock.py"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in [name for name in os.environ if name.startswith("TENURE_")]:
        if not name.startswith("TENURE_TEST_"):
            monkeypatch.delenv(name)
    # Nothing of the machine's own settings, state and stores.
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TENURE_MACHINE_DIR", str(home / "machine"))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".tenure").mkdir()
    monkeypatch.chdir(tmp_path)
    before = tenure.use(None)
    yield tmp_path
    tenure.use(before)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where everything that tests need is installed, a skipped test is a failed one."""
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("TENURE_TEST_NO_SKIP") and reporter.stats.get("skipped"):
        reporter.write_line("a test was skipped, and none may be", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
