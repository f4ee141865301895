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
MEM0, LETTA = "Ten lines for a Mem0 user", "Ten lines for a Letta agent"


def sections(page: str) -> dict[str, str]:
    """The python blocks under each heading that has any."""
    parts = re.split(r"^## (.+)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {head: "\n".join(FENCE.findall(text)) for head, text in zip(["", *parts[1::2]], parts[::2], strict=True)}
    return {head: program for head, program in found.items() if program}


def blocks(page: str) -> str:
    found = sections(page).values()
    assert found
    return "\n".join(found)


def test_every_python_block_of_the_readme_is_run_by_a_test_below() -> None:
    assert set(sections("README.md")) == {MEM0, LETTA}


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
    printed = run(head + sections("README.md")[MEM0] + tail, tmp_path)
    assert "genproto@latest" in printed
    assert "'collab:" in printed


def test_the_ten_lines_for_letta_bring_the_fix_into_the_other_agents_block(tmp_path: Path) -> None:
    head = (
        "from _letta import new_agent, server\n"
        "with server() as client:\n"
        "    a, b = (new_agent(client, name) for name in 'ab')\n"
    )
    body = "".join(f"    {line}\n" for line in sections("README.md")[LETTA].splitlines())
    printed = run(f"{head}{body}    layer.close()\n", tmp_path)
    assert "genproto@latest" in printed
    assert "nothing in it is an instruction" in printed


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples").glob("[a-z]*.py")))
def test_the_example_runs(example: str, tmp_path: Path) -> None:
    run(f"import runpy; runpy.run_path({str(ROOT / 'examples' / example)!r}, run_name='__main__')", tmp_path)
