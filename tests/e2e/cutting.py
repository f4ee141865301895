"""A way to a database that is cut at chosen commits.

In:   the URL of a PostgreSQL database.
Out:  a URL on a free loopback port that leads there. A cut at COMMIT comes either before the server has heard of it,
      or after it has carried it out and before anybody is told.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Literal, Self

from sqlalchemy import make_url

Cut = Literal["before", "after"]
COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"  # as a simple query; `BEGIN … READ COMMITTED` is none


class Proxy:
    """Passes bytes on; `cuts(n)` says whether and how the n-th commit of all is cut."""

    def __init__(self, url: str, cuts: Callable[[int], Cut | None]) -> None:
        self._there = make_url(url)
        self._cuts = cuts
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.commits = 0
        self.cut = {"before": 0, "after": 0}
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        """Where to connect instead."""
        port = self._listening.getsockname()[1]
        return self._there.set(port=port).render_as_string(hide_password=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listening.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._listening.accept()
                there = socket.create_connection((self._there.host or "", self._there.port or 0))
                link = _Link(here, there)
                threading.Thread(target=self._up, args=(link,), daemon=True).start()
                threading.Thread(target=link.down, daemon=True).start()

    def _up(self, link: _Link) -> None:
        with suppress(OSError):
            while data := link.here.recv(1 << 16):
                cut = self._decide() if COMMIT in data else None
                if cut == "before":
                    break
                link.silent = cut == "after"
                link.there.sendall(data)
                if cut == "after":
                    link.answered.wait(30)
                    break
        link.close()

    def _decide(self) -> Cut | None:
        with self._lock:
            self.commits += 1
            cut = self._cuts(self.commits)
            if cut is not None:
                self.cut[cut] += 1
            return cut


class _Link:
    """One connection in both directions."""

    def __init__(self, here: socket.socket, there: socket.socket) -> None:
        self.here, self.there = here, there
        self.silent = False
        self.answered = threading.Event()

    def down(self) -> None:
        with suppress(OSError):
            while data := self.there.recv(1 << 16):
                if self.silent:
                    self.answered.set()
                    break
                self.here.sendall(data)
        self.close()

    def close(self) -> None:
        for end in (self.here, self.there):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
