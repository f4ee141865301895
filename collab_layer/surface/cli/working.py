"""Commands that keep the graph current: `index`, `worker`."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from collab_layer.errors import InputError
from collab_layer.surface.cli.options import Json
from collab_layer.surface.cli.output import emit, progress, remark
from collab_layer.surface.cli.session import Session, session_of

if TYPE_CHECKING:
    from collab_layer.plugins.specs import BackendSpec

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
    from collab_layer.plugins.manager import load

    spec = _pick("backend", backend, load().backends)
    settings = dict(_pair(text) for text in setting or ())
    unknown = sorted(set(settings) - set(spec.settings))
    if unknown:
        raise InputError(f"`{backend}` has no setting `{unknown[0]}`; it has {', '.join(spec.settings) or 'none'}")
    count = asyncio.run(_index(session_of(ctx), spec, settings, owner))
    if as_json:
        return emit({"backend": backend, "records": count})
    sys.stdout.write(f"{count} records of `{backend}` are in. Derive from them: collab worker --once\n")
    return None


def worker(
    ctx: typer.Context,
    workers: Annotated[int, typer.Option("--workers", "-n", min=1, max=64, help="How many.")] = 1,
    once: Annotated[bool, typer.Option("--once", help="Stop when nothing is due in this tenant.")] = False,
    on: Annotated[str, typer.Option(help="Who drives them.")] = "loop",
    as_json: Json = False,
) -> None:
    """Link, embed and propagate what was observed, until interrupted."""
    from collab_layer.plugins.manager import load

    runner = _pick("runner", on, load().runners)
    if not once:
        remark("Working; stop with Ctrl-C.")
    with _terminated_like_interrupted():
        settled = runner.run(partial(_work, session_of(ctx), once), workers=workers)
    if as_json:
        return emit({"settled": settled})
    sys.stdout.write(f"{settled} interactions settled.\n" if once else "Stopped.\n")
    return None


async def _index(session: Session, spec: BackendSpec, settings: Mapping[str, str], owners: Sequence[str] | None) -> int:
    from collab_layer.layer import AsyncCollabLayer

    store = await spec.open(**settings)
    async with await AsyncCollabLayer.open(session.url, tenant=session.tenant, settings=session.settings()) as layer:
        with progress() as bar:
            task = bar.add_task("owners", total=None)
            return await layer.index(store, owners, lambda done, total: bar.update(task, completed=done, total=total))


def _work(session: Session, once: bool, should_stop: Callable[[], bool]) -> int:
    """One worker; a function of this module, so that it can be sent to another process."""
    return asyncio.run(_drive(session, once, should_stop))


async def _drive(session: Session, once: bool, should_stop: Callable[[], bool]) -> int:
    from collab_layer.layer import AsyncCollabLayer

    async with await AsyncCollabLayer.open(session.url, tenant=session.tenant, settings=session.settings()) as layer:
        if once:
            return await layer.drain()
        until = asyncio.Event()
        working = asyncio.create_task(layer.work(until))
        while not should_stop() and not working.done():  # noqa: ASYNC110  the flag is another thread's
            await asyncio.sleep(POLL_S)
        until.set()
        await working
        return 0


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
