"""A tiny, deterministic stand-in for an OpenAI-compatible API, on loopback.

It serves ``/models``, ``/chat/completions`` (plain and streamed) and
``/embeddings`` below any prefix. There is no model behind it:

* A user message that contains ``CALL <tool> <json arguments>`` is answered with
  that tool call, every other message with the text ``ok``.
* A user message that contains ``SLOW`` is answered once ``GET /_release`` was
  asked for, which leaves time to act while an agent's turn is in progress.
* An embedding is a normalised bag of hashed words, so texts that share words
  are close to each other.

``GET /_log`` returns the chat requests seen so far and ``GET /_inflight`` the
number of delayed requests in progress. Run ``python stub_openai.py --help``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CHAT_MODEL = "gpt-4o-mini"
EMBEDDING_MODEL = "text-embedding-3-small"
DIMENSIONS = 1536
SLOW_SECONDS = 60.0
LOG_LIMIT = 500
USAGE = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
CALL = re.compile(r"CALL\s+(\w+)\s+(?=\{)")

Json = dict[str, Any]


def embed(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Return the normalised hashed bag of words of ``text``."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        vector[int.from_bytes(digest, "big") % dimensions] += 1.0
    norm = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / norm for value in vector]


def text_of(message: Json) -> str:
    """Return the text of a chat message, whose content may be a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content)
    return str(content)


def reply_to(request: Json, serial: int) -> tuple[Json, str]:
    """Return the assistant message for a chat request and its finish reason."""
    last = request["messages"][-1]
    text = text_of(last)
    match = CALL.search(text) if last.get("role") == "user" else None
    if match is None:
        return {"role": "assistant", "content": "ok"}, "stop"
    arguments, _end = json.JSONDecoder().raw_decode(text[match.end() :])
    call = {
        "id": f"call_{serial}",
        "type": "function",
        "function": {"name": match[1], "arguments": json.dumps(arguments)},
    }
    return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"


class StubServer(ThreadingHTTPServer):
    """The HTTP server together with what it has seen."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), StubHandler)
        self.lock = threading.Lock()
        self.log: list[Json] = []
        self.serial = 0
        self.inflight = 0
        self.released = threading.Event()

    def record(self, request: Json) -> int:
        """Remember a chat request and return its serial number."""
        with self.lock:
            self.serial += 1
            self.log = [*self.log[1 - LOG_LIMIT :], request]
            return self.serial

    def wait_slowly(self) -> None:
        """Hold a request back until it is released, counting it as in flight meanwhile."""
        with self.lock:
            self.inflight += 1
            held = self.released
        held.wait(SLOW_SECONDS)
        with self.lock:
            self.inflight -= 1

    def release(self) -> None:
        """Let every request go that is held back."""
        with self.lock:
            held, self.released = self.released, threading.Event()
        held.set()


class StubHandler(BaseHTTPRequestHandler):
    """Routes of the stub."""

    protocol_version = "HTTP/1.1"
    server: StubServer

    def log_message(self, *_args: object) -> None:
        """Keep the console quiet."""

    def do_GET(self) -> None:
        """Serve the model list and the introspection routes."""
        path = self.path.partition("?")[0].rstrip("/")
        if path.endswith("/models"):
            models = [
                {"id": name, "object": "model", "created": 1, "owned_by": "stub"}
                for name in (CHAT_MODEL, EMBEDDING_MODEL)
            ]
            self._send({"object": "list", "data": models})
        elif path == "/_log":
            self._send(self.server.log)
        elif path == "/_inflight":
            self._send({"inflight": self.server.inflight})
        elif path == "/_release":
            self.server.release()
            self._send({"released": True})
        elif path == "/_ping":
            self._send({"pong": True})
        else:
            self._fail(404, f"no route GET {path}")

    def do_POST(self) -> None:
        """Serve chat completions and embeddings."""
        path = self.path.partition("?")[0].rstrip("/")
        length = int(self.headers.get("content-length") or 0)
        try:
            request = json.loads(self.rfile.read(length) or b"{}")
            if path.endswith("/chat/completions"):
                self._chat(request)
            elif path.endswith("/embeddings"):
                self._embeddings(request)
            else:
                self._fail(404, f"no route POST {path}")
        except (KeyError, IndexError, TypeError, ValueError) as error:
            self._fail(400, f"bad request: {error!r}")

    def _embeddings(self, request: Json) -> None:
        texts = request["input"]
        if isinstance(texts, str):
            texts = [texts]
        rows = [
            {"object": "embedding", "index": index, "embedding": embed(str(text))} for index, text in enumerate(texts)
        ]
        model = request.get("model", EMBEDDING_MODEL)
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        self._send({"object": "list", "model": model, "data": rows, "usage": usage})

    def _chat(self, request: Json) -> None:
        serial = self.server.record(request)
        last = request["messages"][-1]
        if last.get("role") == "user" and "SLOW" in text_of(last):
            self.server.wait_slowly()
        message, finish = reply_to(request, serial)
        model = request.get("model", CHAT_MODEL)
        head = {"id": f"chatcmpl-{serial}", "created": 1, "model": model}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            body = {**head, "object": "chat.completion", "choices": [choice]}
            self._send({**body, "usage": USAGE})
            return
        for index, call in enumerate(message.get("tool_calls", [])):
            call["index"] = index
        head["object"] = "chat.completion.chunk"
        first = {"index": 0, "delta": message, "finish_reason": None}
        last_chunk = {"index": 0, "delta": {}, "finish_reason": finish}
        chunks = [
            {**head, "choices": [first]},
            {**head, "choices": [last_chunk], "usage": USAGE},
        ]
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        self._write(200, "".join([*lines, "data: [DONE]\n\n"]), "text/event-stream")

    def _fail(self, status: int, message: str) -> None:
        self._send({"error": {"message": message, "type": "stub_error"}}, status)

    def _send(self, body: object, status: int = 200) -> None:
        self._write(status, json.dumps(body), "application/json")

    def _write(self, status: int, text: str, content_type: str) -> None:
        payload = text.encode()
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def main() -> int:
    """Serve until the process is stopped."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="0 picks a free port")
    args = parser.parse_args()
    server = StubServer(args.port)
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
