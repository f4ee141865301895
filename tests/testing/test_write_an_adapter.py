"""`docs/write-an-adapter.md` tells the truth: its adapter runs, its table is the enum's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from collab_layer.ports.backend import METHODS, Can
from collab_layer.testing import BackendContract
from collab_layer.testing.capabilities import meanings, table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "write-an-adapter.md").read_text(encoding="utf-8")


def test_the_table_of_abilities_is_the_one_made_from_the_enum():
    shown = re.search(r"<!-- capabilities: start.*?-->\n(.*?)\n<!-- capabilities: end -->", PAGE, re.DOTALL)
    assert shown is not None
    assert shown.group(1) == table()


def test_every_ability_says_what_it_promises():
    assert set(meanings()) == set(Can) == set(METHODS)
    assert all(words.endswith(".") for words in meanings().values())


def test_a_column_shows_what_a_store_promises():
    lines = table({"ours": {Can.SEARCH}, "theirs": set()}).splitlines()
    assert lines[0].endswith("| method | ours | theirs |")
    assert [line.endswith("| yes |  |") for line in lines[2:]] == [ability is Can.SEARCH for ability in Can]


@pytest.mark.parametrize("hook", ["put", "remove", "edit", "outage", "traces", "now", "starts_empty", "any_loop"])
def test_every_hook_the_page_names_exists(hook):
    assert hook in PAGE
    assert hasattr(BackendContract, hook)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The files of the page, each under the name in its first line."""
    where = tmp_path_factory.mktemp("notes")
    for name, body in re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL):
        (where / name).write_text(body, encoding="utf-8")
    return where


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_adapter_of_the_page_passes_the_contract(folder):
    result = run(folder, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", f"--rootdir={folder}")
    assert result.returncode == 0, result.stdout
    assert "does not promise `search`" in result.stdout
    assert "does not promise `list_owners`" not in result.stdout


def test_the_hook_of_the_page_describes_a_store_that_opens(folder):
    code = (
        "import asyncio, sys, notes_plugin\n"
        "from collab_layer.plugins.check import descriptions\n"
        "hook = 'collab_register_backends'\n"
        "(spec,) = descriptions(hook, notes_plugin.collab_register_backends())\n"
        "assert 'notes_store' not in sys.modules\n"
        "store = asyncio.run(spec.open(path='missing.json'))\n"
        "assert store.can == spec.can and store.name == spec.name\n"
        "print(asyncio.run(store.health()).condition)\n"
    )
    result = run(folder, "-c", code)
    assert (result.stdout, result.returncode) == ("down\n", 0), result.stderr
