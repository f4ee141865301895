"""Commands that keep the graph current: `index`, `worker`."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from collab_layer.errors import InputError
from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import emit, progress, remark
from collab_layer.surface.cli.session import Session, session_of

if TYPE_CHECKING:
    from collab_layer import AsyncCollabLayer
    from collab_layer.ports.backend import MemoryBackend

T = TypeVar("T")
POLL_S = 0.2
"""How often a worker looks whether it is to stop."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("index")(index)
    app.command("worker")(worker)


def index(
    ctx: typer.Context,
    backend: Annotated[str, typer.Argument(metavar="BACKEND", help="One of `collab backends`.")],
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the backend, as name=value; may be repeated.")
    ] = None,
    owner: Annotated[
        list[str] | None, typer.Option(help="Only these owners; needed where the store cannot list its owners.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Bring an already full store in. It can be stopped and started again."""
    store = _store(backend, setting or ())
    count = asyncio.run(_index(session_of(ctx), store, owner))
    if as_json:
        return emit({"backend": backend, "records": count})
    sys.stdout.write(f"{count} records of `{backend}` are in, embedded and linked.\n")
    return None


def worker(
    ctx: typer.Context,
    workers: Annotated[int, typer.Option("--workers", "-n", min=1, max=64, help="How many.")] = 1,
    once: Annotated[bool, typer.Option("--once", help="Stop when nothing is due in this tenant.")] = False,
    on: Annotated[str, typer.Option(help="Who drives them.")] = "loop",
    attach: Annotated[
        list[str] | None, typer.Option(help="A backend whose memories they read; may be repeated.")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as backend.name=value; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Link, embed and propagate what was observed, until interrupted."""
    from collab_layer.plugins.manager import load

    runner = _pick("runner", on, load().runners)
    if runner.elsewhere and not session_of(ctx).is_shared:
        raise InputError(f"workers on `{on}` may be on other machines; name a database they reach: postgresql://…")
    stores = _attached(attach or (), setting or ())
    settled = 0
    with _terminated_like_interrupted(), suppress(KeyboardInterrupt):  # a runner ends by itself; here it had not begun
        if not once:
            remark("Working; stop with Ctrl-C.")
        settled = runner.run(partial(_work, session_of(ctx), stores, once), workers=workers)
    if as_json:
        return emit({"settled": settled})
    sys.stdout.write(f"{settled} interactions settled.\n" if once else "Stopped.\n")
    return None


@dataclass(frozen=True, slots=True)
class Store:
    """A backend by name, with its settings; opened where it is used."""

    name: str
    settings: Mapping[str, str]

    async def open(self) -> MemoryBackend:
        """Open it; its SDK is imported now."""
        from collab_layer.plugins.manager import load

        return await load().backends[self.name].open(**self.settings)


async def _index(session: Session, store: Store, owners: Sequence[str] | None) -> int:
    async with _layer(session, (store,)) as (layer, (backend,)):
        with progress() as bar:
            task = bar.add_task("owners", total=None)
            count = await layer.index(
                backend, owners, lambda done, total: bar.update(task, completed=done, total=total)
            )
        await layer.drain()  # here, where the store is at hand
        return count


def _work(session: Session, stores: Sequence[Store], once: bool, should_stop: Callable[[], bool]) -> int:
    """One worker; a function of this module, so that it can be sent to another process."""
    return asyncio.run(_drive(session, stores, once, should_stop))


async def _drive(session: Session, stores: Sequence[Store], once: bool, should_stop: Callable[[], bool]) -> int:
    async with _layer(session, stores) as (layer, _):
        if once:
            return await layer.drain()
        until = asyncio.Event()
        working = asyncio.create_task(layer.work(until))
        while not should_stop() and not working.done():  # noqa: ASYNC110  the flag is another thread's
            await asyncio.sleep(POLL_S)
        until.set()
        await working
        return 0


@asynccontextmanager
async def _layer(
    session: Session, stores: Sequence[Store]
) -> AsyncGenerator[tuple[AsyncCollabLayer, list[MemoryBackend]]]:
    """An open layer with its stores attached; both are closed again."""
    from collab_layer.layer import AsyncCollabLayer

    backends = [await store.open() for store in stores]
    settings = session.settings()
    opened = await AsyncCollabLayer.open(session.url, tenant=session.tenant, backends=backends, settings=settings)
    async with opened as layer:
        yield layer, backends


def _store(name: str, settings: Sequence[str]) -> Store:
    """A backend with checked settings.

    Raises:
        InputError: No such backend is installed, or it has no such setting.
    """
    from collab_layer.plugins.manager import load

    spec = _pick("backend", name, load().backends)
    pairs = dict(_pair(text) for text in settings)
    unknown = sorted(set(pairs) - set(spec.settings))
    if unknown:
        raise InputError(f"`{name}` has no setting `{unknown[0]}`; it has {', '.join(spec.settings) or 'none'}")
    return Store(name, pairs)


def _attached(names: Sequence[str], settings: Sequence[str]) -> tuple[Store, ...]:
    of: dict[str, list[str]] = {name: [] for name in names}
    for text in settings:
        name, dot, rest = text.partition(".")
        if not dot or name not in of:
            raise InputError(f"`{text}` is no setting of an attached backend; write it as backend.name=value")
        of[name].append(rest)
    return tuple(_store(name, given) for name, given in of.items())


def _pick(kind: str, name: str, known: Mapping[str, T]) -> T:
    if name not in known:
        there = ", ".join(f"`{one}`" for one in known) or "none"
        raise InputError(f"there is no {kind} `{name}`; installed: {there}. See `collab backends`")
    return known[name]


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"`{text}` is no setting; write it as name=value")
    return name, value


@contextmanager
def _terminated_like_interrupted() -> Generator[None]:
    """Let SIGTERM stop the workers the way Ctrl-C does: after what they have in hand."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
