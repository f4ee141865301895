import asyncio
import subprocess
import sys

import pytest

from collab_layer.errors import InputError
from collab_layer.plugins.manager import load


def test_installing_the_package_is_enough_to_offer_the_store():
    plugins = load()
    assert plugins.origin["backend:graphiti"] == "graphiti"
    assert plugins.backends["graphiti"].distribution == "collab-layer-graphiti"


def test_describing_the_store_does_not_import_graphiti():
    code = (
        "import sys, collab_layer_graphiti; from collab_layer_graphiti.plugin import collab_register_backends as say;"
        "say(); sys.exit(any(name in sys.modules for name in ('graphiti_core', 'falkordb', 'redis')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_graphiti_forgets_to_declare_comes_with_the_package():
    from importlib.metadata import requires

    assert any(line.startswith("httpx") for line in requires("collab-layer-graphiti"))


def test_settings_open_a_store(falkor, graph):
    async def story():
        spec = load().backends["graphiti"]
        store = await spec.open(url=falkor.url, graph=graph, name="mine", write="true", timeout_s="3")
        assert (store.name, (await store.health()).condition) == ("mine", "empty")
        assert store.can <= spec.can
        await store.aclose()

    asyncio.run(story())


@pytest.mark.parametrize("settings", [{}, {"url": "nowhere"}, {"url": "falkor://localhost", "timeout_s": "soon"}])
def test_settings_that_cannot_be_used_are_refused_by_name(settings):
    with pytest.raises(InputError, match=r"url|falkor://|timeout_s"):
        asyncio.run(load().backends["graphiti"].open(**settings))
