"""A server process on loopback, for the test servers of this package and of adapters.

In:   a process, a port one would like.
Out:  a free port; an end, step by step.
"""

from __future__ import annotations

import signal
import socket
import subprocess


def free_port(preferred: int | None = None) -> int:
    """The preferred loopback port if it is free, else any free one.

    Raises:
        OSError: None is free.
    """
    for candidate in (preferred or 0, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no loopback port is free")


def running_pid(process: subprocess.Popen[bytes] | None) -> int | None:
    """The process's id, or None if there is none or it has ended."""
    return process.pid if process is not None and process.poll() is None else None


def end(process: subprocess.Popen[bytes] | None, *steps: tuple[signal.Signals, float]) -> None:
    """End a process: each signal in turn, with the seconds to wait after it.

    Raises:
        TimeoutError: It does not end.
    """
    if process is None:
        return
    for step, patience_s in steps:
        process.send_signal(step)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue
        return
    raise TimeoutError(f"the server (process {process.pid}) does not end")


__all__ = ["end", "free_port", "running_pid"]
