"""An OpenAI server on loopback that answers as a test wrote down, badly where told to.

In:   answers, in order; the last one is given for ever.
Out:  a base URL for any OpenAI-compatible client, and the requests that came.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

JSON = {"Content-Type": "application/json"}
DRIP_S = 0.05
"""Between two bytes of an answer that drips."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One answer.

    Attributes:
        body: As sent.
        status: HTTP status.
        headers: Beside the length.
        stall: Never comes.
        drip: Comes a byte at a time.
        hang_up: The connection is closed instead.
        after_s: Comes so late.
    """

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(JSON))
    stall: bool = False
    drip: bool = False
    hang_up: bool = False
    after_s: float = 0.0


def completion(
    text: str | None,
    *,
    finish: str = "stop",
    usage: tuple[int, int] | None = (11, 7),
    refusal: str | None = None,
    after_s: float = 0.0,
) -> HttpAnswer:
    """A chat completion.

    Args:
        text: What the model says.
        finish: Why it stopped: `stop`, `length`, `content_filter`.
        usage: Tokens in and out; None reports none.
        refusal: What it says instead.
        after_s: How long it takes.
    """
    message = {"role": "assistant", "content": text, "refusal": refusal}
    body: dict[str, Any] = {"id": "c1", "object": "chat.completion", "created": 1_700_000_000, "model": "small"}
    body["choices"] = [{"index": 0, "finish_reason": finish, "message": message}]
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return HttpAnswer(json.dumps(body).encode(), after_s=after_s)


def problem(status: int, words: str = "no", **headers: str) -> HttpAnswer:
    """An error as OpenAI words it; `Retry_After="1"` is a header."""
    body = json.dumps({"error": {"message": words, "type": "invalid_request_error", "code": None}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpAnswer(body, status=status, headers={**JSON, **named})


class FakeOpenAI:
    """The server; a context manager.

    Attributes:
        requests: The bodies it was sent.
        keys: The `Authorization` header of each.
        times: When each came, by the monotonic clock, seconds.
        came: Set when a request comes.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.times: list[float] = []
        self.came = threading.Event()
        self._answers = [completion("{}")]
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Its `base_url`; refuses connections after the `with`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def will(self, *answers: HttpAnswer) -> None:
        """Give these from now on, at least one."""
        self._answers = list(answers)

    def take(self, body: dict[str, Any], key: str | None) -> HttpAnswer:
        """Note a request; the answer to it."""
        with self._lock:
            self.requests.append(body)
            self.keys.append(key)
            self.times.append(time.monotonic())
            self.came.set()
            return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def waited(self, seconds: float) -> bool:
        """Wait so long; False if the server is to stop meanwhile."""
        return not self._stopping.wait(seconds)


def _handler(fake: FakeOpenAI) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = fake.take(body, self.headers["Authorization"])
            self.close_connection = answer.hang_up or answer.stall
            if answer.stall:
                fake.waited(60)
            elif not answer.hang_up and fake.waited(answer.after_s):
                try:
                    self._give(answer)
                except OSError:  # the client has had enough
                    self.close_connection = True

        def _give(self, answer: HttpAnswer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if not answer.drip:
                self.wfile.write(answer.body)
                return
            for at in range(len(answer.body)):
                if not fake.waited(DRIP_S):
                    break
                self.wfile.write(answer.body[at : at + 1])
                self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    return Handler


__all__ = ["FakeOpenAI", "HttpAnswer", "completion", "problem"]
