"""The examples of docs/python.md run as they are written, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

from helpers import run

DOCUMENT = Path(__file__).parents[3] / "docs" / "python.md"


def test_the_examples_run(here: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 10, "the examples are not found any more"
    (here / "examples.py").write_text("\n".join(blocks))
    printed = run("import runpy; runpy.run_path('examples.py')")
    assert "Report(completed=2, failed=0, lost=0)" in printed
    assert (here / "log.jsonl").read_text() == '{"event": "started"}\n'
    assert (here / "n.json").read_text().split() == ["{", '"n":', "1", "}"]
