"""Every python block of the README and the tutorial runs, in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> str:
    found = FENCE.findall((ROOT / page).read_text(encoding="utf-8"))
    assert found
    return "\n".join(found)


def run(program: str, folder: Path) -> str:
    own = {"PYTHONPATH": str(ROOT / "examples"), "MEM0_DIR": str(folder / "mem0"), "COLLAB_WORKER": "false"}
    call = [sys.executable, "-c", program]
    done = subprocess.run(call, cwd=folder, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_tutorial_runs(tmp_path: Path) -> None:
    printed = run(blocks("docs/tutorial.md"), tmp_path)
    assert "certificate" in printed


def test_the_ten_lines_of_the_readme_bring_the_fix_to_the_other_agent(tmp_path: Path) -> None:
    head = "from _offline import offline_memory\nmine = offline_memory()\n"
    tail = "\nmine.close()\nlayer.close()\n"
    printed = run(head + blocks("README.md") + tail, tmp_path)
    assert "genproto@latest" in printed
    assert "'collab:" in printed


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples").glob("[a-z]*.py")))
def test_the_example_runs(example: str, tmp_path: Path) -> None:
    run(f"import runpy; runpy.run_path({str(ROOT / 'examples' / example)!r}, run_name='__main__')", tmp_path)
