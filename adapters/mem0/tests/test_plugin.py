import asyncio
import json
import subprocess
import sys

import pytest

from collab_layer.errors import BackendError, InputError
from collab_layer.plugins.manager import load
from collab_layer.ports.backend import Can


def test_installing_the_package_is_enough_to_offer_the_store():
    plugins = load()
    assert plugins.origin["backend:mem0"] == "mem0"
    spec = plugins.backends["mem0"]
    assert spec.distribution == "collab-layer-mem0"
    assert Can.WATCH in spec.can


def test_describing_the_store_does_not_import_mem0():
    code = (
        "import sys; from collab_layer_mem0.plugin import collab_register_backends as describe;"
        "describe(); sys.exit('mem0' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_configuration_file_opens_a_store(tmp_path):
    openai = {"provider": "openai", "config": {"api_key": "unused"}}
    config = {
        "vector_store": {
            "provider": "chroma",
            "config": {"collection_name": "memories", "path": str(tmp_path / "chroma")},
        },
        "embedder": openai,
        "llm": openai,
        "history_db_path": str(tmp_path / "history.db"),
    }
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps(config), encoding="utf-8")

    async def story():
        store = await load().backends["mem0"].open(config=str(file), name="mine", write="true")
        assert (store.name, (await store.health()).condition) == ("mine", "empty")
        assert store.can == load().backends["mem0"].can | {Can.ERASE, Can.ERASE_OWNER}  # its files can be cleaned
        await store.aclose()

    asyncio.run(story())


@pytest.mark.parametrize("settings", [{}, {"config": "x", "api_key": "y"}, {"config": "/no/such/file"}])
def test_settings_that_cannot_be_used_are_refused_by_name(settings):
    with pytest.raises(InputError, match=r"config|api_key"):
        asyncio.run(load().backends["mem0"].open(**settings))


def test_a_configuration_mem0_refuses_is_a_backend_error(tmp_path):
    bad = {"vector_store": {"provider": "no-such-store", "config": {}}}
    with pytest.raises(BackendError, match="opening Mem0"):
        asyncio.run(load().backends["mem0"].open(config=bad))
