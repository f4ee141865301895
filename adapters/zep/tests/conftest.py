import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def package(name):
    # Test modules are imported by path, so a folder beside them is no package yet.
    if name not in sys.modules:
        folder = HERE / name
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


package("zep_contract")


@pytest.fixture(scope="session")
def _server():
    from zep_contract import ContractServer

    with ContractServer() as running:
        yield running


@pytest.fixture(scope="session")
def _zep(_server):
    from zep_cloud import Zep

    client = Zep(api_key=_server.api_key, base_url=_server.url, max_retries=0)
    yield client
    client._client_wrapper.httpx_client.httpx_client.close()


@pytest.fixture
def server(_server):
    """A contract server with nothing on it."""
    _server.reset()
    return _server


@pytest.fixture
def zep(server, _zep):
    """A real client of it that does not repeat what fails."""
    return _zep


@pytest.fixture
def store(zep, tmp_path):
    """A factory of stores over the server."""
    from collab_layer_zep import ZepBackend

    def make(client=None, **settings):
        return ZepBackend(client or zep, **{"write": True, "ledger": tmp_path / "zep.db", **settings})

    return make


@pytest.fixture
def layer(tmp_path):
    from collab_layer import CollabLayer
    from collab_layer.config import Settings

    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as opened:
        yield opened
