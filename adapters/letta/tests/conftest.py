"""A server in memory for most tests, and the real one for those marked `letta`.

The real one is installed by `make test-letta`; COLLAB_LETTA names another folder. It is started
by the first test that needs it, unless it runs already, and stopped by its pid.
"""

import importlib.util
import itertools
import os
import sys
from pathlib import Path

import httpx
import pytest
from collab_layer_letta.testing import FakeLetta, transport
from letta_client import AsyncLetta, Letta

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("COLLAB_LETTA", HERE.parents[2] / ".venv-letta"))
MISSING = f"no Letta server is installed in {FOLDER}; run `make test-letta`"


def sibling(name, path=None):
    # Test modules are imported by path, so a sibling is no package member.
    key = f"letta_tests_{name}"
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, path or HERE / f"{name}.py")
        sys.modules[key] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[key])
    return sys.modules[key]


@pytest.fixture(scope="session")
def server():
    """Addresses of the real server and of its model, and its database."""
    assert (FOLDER / "installed").exists(), MISSING
    kit = sibling("letta_server", HERE / "kit" / "letta_server.py").LettaKit(FOLDER)
    ran_before = kit.status()["healthy"]
    kit.start()
    yield kit
    if not ran_before:
        kit.stop()


@pytest.fixture
def memory():
    """A server in memory with nothing on it."""
    made = sibling("worlds").InMemory(sibling("people").People)
    yield made
    made.close()


@pytest.fixture
def real(server):
    """The real server with nothing of ours on it."""
    told = server.status()
    made = sibling("worlds").Real(sibling("people").People, told["base_url"], told["stub_url"])
    yield made
    made.close()


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.letta)])
def world(request):
    """A story is told twice: in memory, and on the real server."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def service():
    """A service on loopback with a fixed answer."""
    return sibling("worlds").service


@pytest.fixture
def memory_folder(tmp_path):
    """A factory of memory folders of Letta Code."""
    made = sibling("memory_folders").MemoryFolder
    count = itertools.count()
    return lambda **more: made(tmp_path / f"memory{next(count)}", **more)


@pytest.fixture
def serving():
    """`collab serve` over a database, in a process of its own."""
    return sibling("worlds").serving


@pytest.fixture
def loopback():
    """The server in memory behind a real port."""
    return sibling("worlds").loopback


@pytest.fixture
def fake():
    return FakeLetta()


@pytest.fixture
def client(fake):
    with httpx.Client(transport=transport(fake)) as inner:
        yield Letta(base_url="http://letta.test", api_key="key", http_client=inner)


@pytest.fixture
def async_client(fake):
    """A factory, since the client belongs to the loop it is used on."""
    return lambda: AsyncLetta(
        base_url="http://letta.test", api_key="key", http_client=httpx.AsyncClient(transport=transport(fake))
    )


@pytest.fixture
def people(client):
    found = sibling("people").People(client)
    yield found
    found.close()
