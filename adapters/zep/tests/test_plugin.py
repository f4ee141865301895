import asyncio
import subprocess
import sys

import pytest

from collab_layer.errors import InputError
from collab_layer.plugins.manager import load


def test_installing_the_package_is_enough_to_offer_the_store():
    plugins = load()
    assert plugins.origin["backend:zep"] == "zep"
    assert plugins.backends["zep"].distribution == "collab-layer-zep"


def test_describing_the_store_does_not_import_zeps_sdk():
    code = (
        "import sys, collab_layer_zep; from collab_layer_zep.plugin import collab_register_backends as say;"
        "say(); sys.exit(any(name in sys.modules for name in ('zep_cloud', 'httpx')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_settings_open_a_store(server, tmp_path):
    async def story():
        spec = load().backends["zep"]
        settings = {"ledger": str(tmp_path / "z.db"), "write": "true", "timeout_s": "3", "name": "mine"}
        settings["speakers"] = " Ben B. = user:ben,"
        store = await spec.open(api_key=server.api_key, base_url=server.url, **settings)
        assert (store.name, (await store.health()).condition) == ("mine", "empty")
        assert store.can == spec.can
        assert {name: str(whose) for name, whose in store.voices.named.items()} == {"ben b.": "user:ben"}
        await store.aclose()

    asyncio.run(story())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"api_key": "k", "timeout_s": "soon"},
        {"api_key": "k", "timeout_s": 0},
        {"api_key": "k", "speakers": "Ben"},
        {"api_key": "k", "speakers": "=user:ben"},
    ],
)
def test_settings_that_cannot_be_used_are_refused_by_name(settings, monkeypatch):
    monkeypatch.delenv("ZEP_API_KEY", raising=False)
    with pytest.raises(InputError, match=r"api_key|timeout_s|speakers"):
        asyncio.run(load().backends["zep"].open(**settings))
