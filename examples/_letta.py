"""A Letta server for the examples: yours if LETTA_BASE_URL names one, else one in memory.

LETTA_MODEL and LETTA_EMBEDDING are handles of your server's models; nothing here asks them anything.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from letta_client import Letta

FOLDER = Path(tempfile.mkdtemp(prefix="collab-example-"))
MODELS = {
    "model": os.environ.get("LETTA_MODEL", "openai/gpt-4o-mini"),
    "embedding": os.environ.get("LETTA_EMBEDDING", "openai/text-embedding-3-small"),
}
REAL = "LETTA_BASE_URL" in os.environ
_SANDBOX = "import json, sys; exec(sys.argv[1]); print(json.dumps(collaborative_memory(sys.argv[2])))"


@contextmanager
def server() -> Iterator[Letta]:
    """A client of the server."""
    if REAL:
        with Letta() as client:
            yield client
        return
    from collab_layer_letta.testing import FakeLetta, transport

    with httpx.Client(transport=transport(FakeLetta())) as inner:
        yield Letta(base_url="http://letta.in.memory", api_key="none", http_client=inner)


def new_agent(client: Letta, name: str) -> str:
    """An agent without tools; its id."""
    return client.agents.create(name=name, memory_blocks=[], include_base_tools=False, **MODELS).id


def compiled_prompt(client: Letta, agent: str) -> str:
    """What stands above the agent's next message, as Letta keeps it."""
    message = client.agents.retrieve(agent).message_ids[0]
    (row,) = client.get(f"/v1/messages/{message}", cast_to=object)
    return row["content"]


def run_tool(client: Letta, agent: str, query: str) -> str:
    """What the agent would be told by the pull tool; in memory there is no sandbox, so that a process stands in."""
    if REAL:
        result = client.agents.tools.run("collaborative_memory", agent_id=agent, args={"query": query})
        return str(result.func_return)
    row = client.get(
        f"/v1/agents/{agent}", cast_to=object, options={"params": {"include": ["agent.secrets", "agent.tools"]}}
    )
    environment = {one["key"]: one["value"] for one in row["secrets"]}
    call = [sys.executable, "-I", "-c", _SANDBOX, row["tools"][0]["source_code"], query]
    return json.loads(subprocess.run(call, env=environment, capture_output=True, text=True, check=True).stdout)


@contextmanager
def service(database: str) -> Iterator[str]:
    """`collab serve` over a layer's database; its address."""
    collab = str(Path(sys.executable).with_name("collab"))
    call = [collab, "--url", database, "serve", "--port", "0", "--no-worker", "--json"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()
