"""A Letta server as stories need it: the one in memory, and the real one.

Both give a client, people, turns of agents that are in progress, and a way to run a tool.
"""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
from collab_layer_letta import LettaBackend
from collab_layer_letta.testing import FakeLetta, transport
from letta_client import Letta

RUN = "import json, sys; exec(sys.argv[1]); print(json.dumps(collaborative_memory(**json.loads(sys.argv[2]))))"


class World:
    """What both have."""

    def backend(self, **settings):
        return LettaBackend(self.client, **{"write": True, "debounce_s": 0, **settings})

    def row(self, agent):
        """An agent with everything the API tells of it."""
        include = ["agent.blocks", "agent.tags", "agent.secrets", "agent.tools"]
        return self.client.get(f"/v1/agents/{agent}", cast_to=object, options={"params": {"include": include}})

    def left(self):
        """Labels of the layer's own blocks, and names of its tools."""
        blocks = [one.label for one in self.client.blocks.list(limit=100) if one.label.startswith("collab_")]
        return blocks + [one.name for one in self.client.tools.list(name="collaborative_memory")]


class InMemory(World):
    """Over `FakeLetta`."""

    is_real = False

    def __init__(self, people):
        self.fake = FakeLetta()
        self._http = httpx.Client(transport=transport(self.fake))
        self.client = Letta(base_url="http://letta.test", api_key="key", http_client=self._http)
        self.people = people(self.client)

    @contextmanager
    def mid_turn(self, agent, label, text):
        """A turn in progress; when it ends the agent has appended to a block."""
        turn = self.fake.turn(agent)
        before = next(row["value"] for row in self.row(agent)["blocks"] if row["label"] == label)
        turn.edit(label, f"{before}\n{text}")
        yield
        turn.end()

    def run_tool(self, agent, **arguments):
        """The pull tool as a sandbox runs it: in a process of its own, with the agent's environment."""
        row = self.row(agent)
        (tool,) = (one for one in row["tools"] if one["name"] == "collaborative_memory")
        secrets = {one["key"]: one["value"] for one in row["secrets"]}
        call = [sys.executable, "-I", "-c", RUN, tool["source_code"], json.dumps(arguments)]
        env = {"PATH": os.environ["PATH"], **secrets}
        done = subprocess.run(call, env=env, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def close(self):
        self.people.close()
        self._http.close()


class Real(World):
    """Over a server that runs."""

    is_real = True

    def __init__(self, people, base_url, stub_url):
        self.client = Letta(base_url=base_url, max_retries=0, timeout=120)
        self.people = people(self.client)
        self._stub = stub_url

    @contextmanager
    def mid_turn(self, agent, label, text):
        """A turn in progress: the model's answer is held back meanwhile."""
        edit = json.dumps({"label": label, "new_string": text, "insert_line": -1})
        with ThreadPoolExecutor(1) as pool:
            turn = pool.submit(self.client.agents.messages.create, agent, input=f"SLOW CALL memory_insert {edit}")
            try:
                self._wait_until_inflight(turn)
                yield
            finally:
                self._ask_model("_release")
            turn.result()

    def _wait_until_inflight(self, turn):
        for _ in range(600):
            if self._ask_model("_inflight")["inflight"]:
                return
            assert not turn.done(), turn.result()
            time.sleep(0.05)
        raise AssertionError("the turn did not reach the model")

    def _ask_model(self, path):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self._stub}/{path}", timeout=5) as reply:
            return json.load(reply)

    def run_tool(self, agent, **arguments):
        result = self.client.agents.tools.run("collaborative_memory", agent_id=agent, args=arguments)
        assert result.status == "success", result
        return result.func_return

    def close(self):
        self.people.close()
        self.client.close()


@contextmanager
def serving(url):
    """`collab serve` over a database, on a free port; yields its address."""
    collab = str(Path(sys.executable).with_name("collab"))
    call = [collab, "--url", url, "serve", "--port", "0", "--no-worker", "--json"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()
            process.communicate(timeout=30)


@contextmanager
def loopback(fake):
    """`FakeLetta` behind a real port, for commands; yields its address."""
    serve = transport(fake)

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            reply = serve.handle_request(httpx.Request(self.command, f"http://fake{self.path}", content=body))
            self.send_response(reply.status_code)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply.content)))
            self.end_headers()
            self.wfile.write(reply.content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, *_):
            pass

    with _served(Handler) as url:
        yield url


@contextmanager
def _served(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def service(answer, status=200, headers=None):
    """A service on loopback that answers each request alike; yields its address and what was asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers.get("content-length") or 0)
            asked.append((self.path, dict(self.headers), json.loads(self.rfile.read(length))))
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for key, value in {"content-type": "application/json", **(headers or {})}.items():
                self.send_header(key, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def log_message(self, *_):
            pass

    with _served(Handler) as url:
        yield url, asked
