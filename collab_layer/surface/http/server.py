"""One process that serves: a socket, the layer, a worker, an orderly end.

In:   where the layer is, where to listen.
Out:  returns when told to stop (SIGTERM, Ctrl-C): requests in hand are answered, the worker
      gives its lease back, the database is closed.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from ipaddress import ip_address

import uvicorn
from starlette.types import ASGIApp

from collab_layer.config import ServeSettings, Settings
from collab_layer.errors import InputError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.surface.http.app import create_app

BACKLOG = 2_048
MAX_HEAD = 16_384
"""Bytes of a request's head."""
STOPS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen.

    Attributes:
        host: A name or an address of this machine.
        port: 0 takes a free one.
        worker: Also link, embed and propagate here.
        mcp: Also serve MCP under `/mcp`.
    """

    host: str
    port: int
    worker: bool = True
    mcp: bool = False

    @property
    def exposed(self) -> bool:
        """Whether other machines can reach it."""
        try:
            return not ip_address(self.host).is_loopback
        except ValueError:
            return self.host != "localhost"


async def serve(url: str, settings: Settings, place: Place, listening: Callable[[str, int], None]) -> None:
    """Serve until told to stop.

    Args:
        url: The layer's file or database URL.
        settings: Of the layer and, under `serve`, the limits.
        place: Where to listen.
        listening: Called with host and port once requests are accepted.

    Raises:
        InputError: The port cannot be had, or a limit cannot be used.
        StoreError: The database cannot be opened.
    """
    # The worker is an explicit one: the embedded one would begin with the first write only.
    quiet = settings.model_copy(update={"worker": False})
    with _bound(place) as bound:
        async with await AsyncCollabLayer.open(url, settings=quiet) as layer:
            limits = _named(settings.serve, place)
            server = _Server(_config(create_app(layer, limits, mcp=place.mcp), limits))
            server.listening = lambda: listening(*bound.getsockname()[:2])
            async with _working(layer, server) if place.worker else nullcontext():
                await server.serve(sockets=[bound])


class _Server(uvicorn.Server):
    listening: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        # Unlike its own, this one does not raise the signal again: being stopped is no failure.
        before = {kind: signal.signal(kind, self.handle_exit) for kind in STOPS}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)


def _config(app: ASGIApp, limits: ServeSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        h11_max_incomplete_event_size=MAX_HEAD,
        timeout_graceful_shutdown=limits.stop_timeout_s,
    )


def _named(limits: ServeSettings, place: Place) -> ServeSettings:
    """MCP clients may use the name that was bound, unless that is every name at once."""
    try:
        address = ip_address(place.host)
    except ValueError:
        name = place.host
    else:
        if address.is_unspecified:
            return limits
        name = f"[{address}]" if address.version == 6 else str(address)
    return limits.model_copy(update={"allowed_hosts": (*limits.allowed_hosts, name)})


@contextmanager
def _bound(place: Place) -> Generator[socket.socket]:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(f"`{place.host}` is no host of this machine: {error.strerror}") from error
    with bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(address)
        except OSError as error:
            raise InputError(f"`{place.host}` port {place.port} cannot be had: {error.strerror}") from error
        yield bound


@asynccontextmanager
async def _working(layer: AsyncCollabLayer, server: uvicorn.Server) -> AsyncGenerator[None]:
    """A worker beside the server; if it fails, the server stops, and the failure is raised."""

    def stop(_: asyncio.Task[None]) -> None:
        server.should_exit = True

    worker = asyncio.create_task(layer.work())
    worker.add_done_callback(stop)
    try:
        yield
    finally:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker
