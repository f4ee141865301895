"""Every example of the plugin manual is a plugin that loads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from collab_layer.plugins.check import COMMANDS_HOOK, REGISTERS
from collab_layer.plugins.manager import load
from collab_layer.stages import rules

MANUAL = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^## (collab_\w+)\n.*?^```python\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("hook", [*REGISTERS, COMMANDS_HOOK])
def test_the_example_of_a_hook_loads_and_registers_something(site, hook: str) -> None:
    site.install("example", EXAMPLES[hook], head="")
    plugins = load()
    assert not plugins.failures
    assert "example" in plugins.loaded
    if hook != COMMANDS_HOOK:
        assert "example" in plugins.origin.values()


def test_the_rule_tree_of_the_manual_compiles(site) -> None:
    site.install("example", EXAMPLES["collab_register_domains"], head="")
    assert rules.load(load().domains["wine"].tree).hash
