"""What installing the package brings."""

import asyncio
import subprocess
import sys

import pytest

from collab_layer.errors import InputError
from collab_layer.plugins.manager import load
from collab_layer.ports.backend import Can

LAZY = """
import sys
from collab_layer_letta.plugin import collab_register_backends, collab_register_commands
import collab_layer_letta, typer
collab_register_backends(); collab_register_commands(typer.Typer())
sys.exit("letta_client" in sys.modules)
"""


def test_installing_the_package_is_enough_to_offer_the_store():
    plugins = load()
    assert plugins.origin["backend:letta"] == "letta"
    assert not [one for one in plugins.failures if one.plugin == "letta"]
    assert {Can.WRITE, Can.DEDUPE, Can.ERASE} <= plugins.backends["letta"].can


def test_describing_the_store_and_the_commands_does_not_import_the_sdk():
    assert subprocess.run([sys.executable, "-c", LAZY], check=False).returncode == 0


def test_a_store_opens_from_its_settings(loopback, memory):
    async def story(server):
        spec = load().backends["letta"]
        store = await spec.open(base_url=server, name="mine", write="true", tenant="acme")
        assert (store.name, (await store.health()).condition) == ("mine", "empty")
        assert store.can == spec.can
        await store.aclose()

    with loopback(memory.fake) as server:
        asyncio.run(story(server))


@pytest.mark.parametrize("settings", [{"base_url": "http://x", "write": "perhaps"}])
def test_settings_that_cannot_be_used_are_refused(settings):
    with pytest.raises(InputError, match="perhaps"):
        asyncio.run(load().backends["letta"].open(**settings))
