"""Mem0's service in memory, for an HTTP mock transport: the routes its clients call."""

import hashlib
import json
import re
import threading
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import httpx

FIELDS = ("user_id", "agent_id", "app_id", "run_id")
KINDS = {"user": "user_id", "agent": "agent_id", "app": "app_id", "run": "run_id"}
PING = {"org_id": "o", "project_id": "p", "user_email": "tester"}


class Service:
    """Memories by id; `down` makes every request fail, `queued` answers additions before they are stored."""

    def __init__(self):
        self.items, self.requests, self.ticks = {}, [], 0
        self.down = self.queued = False

    def transport(self):
        return httpx.MockTransport(self.handle)

    def handle(self, request):
        path, method = unquote(request.url.raw_path.decode().partition("?")[0]), request.method
        self.requests.append(f"{method} {path}")
        if self.down:
            raise httpx.ConnectError("unreachable", request=request)
        body = json.loads(request.content) if request.content else {}
        query = dict(request.url.params)
        for verb, pattern, answer in ROUTES:
            found = re.fullmatch(pattern, path)
            if verb == method and found:
                return answer(self, body, query, *found.groups())
        return httpx.Response(404, json={"detail": f"no route {path}"})

    def now(self):
        self.ticks += 1
        return f"2026-05-01T10:{self.ticks // 60 % 60:02}:{self.ticks % 60:02}+00:00"

    def put(self, text, scope, metadata=None):
        at = self.now()
        item = {
            "id": str(uuid.uuid4()),
            "memory": text,
            "hash": hashlib.md5(text.encode()).hexdigest(),
            "metadata": metadata,
            "created_at": at,
            "updated_at": at,
            **{field: scope.get(field) for field in FIELDS},
        }
        self.items[item["id"]] = item
        return item

    # -- routes ---------------------------------------------------------------------------

    def ping(self, body, query):
        return httpx.Response(200, json=PING)

    def add(self, body, query):
        if self.queued:
            return httpx.Response(200, json={"status": "PENDING", "event_id": "e1"})
        scope = {**(body.get("filters") or {}), **body}
        made = [self.put(one["content"], scope, body.get("metadata")) for one in body["messages"]]
        told = [{"id": one["id"], "memory": one["memory"], "event": "ADD"} for one in made]
        return httpx.Response(200, json={"results": told})

    def matching(self, filters):
        wanted = {field: filters[field] for field in FIELDS if field in filters}
        return [one for one in self.items.values() if all(one.get(k) == v for k, v in wanted.items())]

    def search(self, body, query):
        words = set(re.findall(r"\w+", body["query"].casefold()))
        scored = []
        for one in self.matching(body.get("filters") or {}):
            said = set(re.findall(r"\w+", one["memory"].casefold()))
            if words & said:
                scored.append({**one, "score": len(words & said) / len(words | said)})
        scored.sort(key=lambda one: (-one["score"], one["id"]))
        return httpx.Response(200, json={"results": scored[: body.get("top_k") or 10]})

    def list(self, body, query):
        page, size = int(query.get("page", 1)), int(query.get("page_size", 100))
        held = self.matching(body.get("filters") or {})
        shown = held[(page - 1) * size : page * size]
        more = "next" if page * size < len(held) else None
        return httpx.Response(200, json={"count": len(held), "next": more, "previous": None, "results": shown})

    def get(self, body, query, memory_id):
        found = self.items.get(memory_id)
        return httpx.Response(200, json=found) if found else httpx.Response(404, json={"detail": "not found"})

    def edit(self, body, query, memory_id):
        if memory_id not in self.items:
            return httpx.Response(404, json={"detail": "not found"})
        self._edit(memory_id, body)
        return httpx.Response(200, json={"message": "Memory updated successfully!"})

    def _edit(self, memory_id, body):
        item = self.items[memory_id]
        item["memory"] = body.get("text") or item["memory"]
        item["hash"] = hashlib.md5(item["memory"].encode()).hexdigest()
        item["metadata"] = body.get("metadata") or item["metadata"]
        item["updated_at"] = self.now()

    def delete(self, body, query, memory_id):
        if self.items.pop(memory_id, None) is None:
            return httpx.Response(404, json={"detail": "not found"})
        return httpx.Response(200, json={"message": "Memory deleted successfully!"})

    def delete_all(self, body, query):
        for one in self.matching(query):
            del self.items[one["id"]]
        return httpx.Response(200, json={"message": "Memories deleted successfully!"})

    def history(self, body, query, memory_id):
        return httpx.Response(200, json=[])

    def entities(self, body, query):
        named = {(kind, one[field]) for one in self.items.values() for kind, field in KINDS.items() if one.get(field)}
        return httpx.Response(200, json={"results": [{"type": kind, "name": name} for kind, name in sorted(named)]})

    def delete_entity(self, body, query, kind, name):
        return self.delete_all(body, {KINDS[kind]: name})

    def batch_edit(self, body, query):
        for one in body["memories"]:
            self._edit(one["memory_id"], one)
        return httpx.Response(200, json={"message": "updated"})

    def batch_delete(self, body, query):
        for one in body["memories"]:
            self.items.pop(one["memory_id"], None)
        return httpx.Response(200, json={"message": "deleted"})


ONE = r"/v1/memories/(.+)/"
ROUTES = [
    ("GET", r"/v1/ping/", Service.ping),
    ("POST", r"/v3/memories/add/", Service.add),
    ("POST", r"/v3/memories/search/", Service.search),
    ("POST", r"/v3/memories/", Service.list),
    ("GET", r"/v1/memories/(.+)/history/", Service.history),
    ("GET", ONE, Service.get),
    ("PUT", ONE, Service.edit),
    ("DELETE", r"/v1/memories/", Service.delete_all),
    ("DELETE", ONE, Service.delete),
    ("GET", r"/v1/entities/", Service.entities),
    ("DELETE", r"/v2/entities/(\w+)/(.+)/", Service.delete_entity),
    ("PUT", r"/v1/batch/", Service.batch_edit),
    ("DELETE", r"/v1/batch/", Service.batch_delete),
]


@contextmanager
def ping_server():
    """`AsyncMemoryClient` checks its key with a request of its own; this answers it."""

    class Ping(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(PING).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Ping)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
