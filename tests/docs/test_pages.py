"""The pages name what there is, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from collab_layer.plugins.check import COMMANDS_HOOK, REGISTERS
from collab_layer.surface.cli.main import build

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])


def commands(app: typer.Typer, prefix: str = "collab") -> Iterator[str]:
    for command in app.registered_commands:
        yield f"{prefix} {command.name}"
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from commands(group.typer_instance, f"{prefix} {group.name}")


def headings(page: str, pattern: str) -> list[str]:
    return re.findall(pattern, (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_command_has_its_section_and_every_section_its_command() -> None:
    assert sorted(headings("docs/cli.md", r"^### (collab .*)$")) == sorted(commands(build()))


def test_every_command_takes_json() -> None:
    group = typer.main.get_command(build())
    for name in commands(build()):
        command = group
        for word in name.split()[1:]:
            command = command.commands[word]
        assert any("--json" in option.opts for option in command.params), name


def test_every_hook_has_its_section_and_every_section_its_hook() -> None:
    assert sorted(headings("docs/plugins.md", r"^## (collab_\w+)$")) == sorted([*REGISTERS, COMMANDS_HOOK])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, page.name
