"""What this package adds to the layer: stores and commands. The SDK is imported when one is used.

In:   the hooks.
Out:  `BackendSpec`s.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from collab_layer.errors import InputError
from collab_layer.plugins.hookspecs import hookimpl
from collab_layer.plugins.specs import BackendSpec
from collab_layer.ports.backend import Can, MemoryBackend

if TYPE_CHECKING:
    import typer

DISTRIBUTION = "collab-layer-letta"


@hookimpl
def collab_register_backends() -> list[BackendSpec]:
    """Letta's agents, on a server of one's own or in the cloud."""
    return [
        BackendSpec(
            name="letta",
            summary="Letta: blocks and archives of agents, on a server of one's own or in the cloud",
            can=frozenset({Can.SEARCH, Can.LIST_OWNERS, Can.ERASE, Can.WRITE, Can.DEDUPE}),
            open=open_letta,
            distribution=DISTRIBUTION,
            settings={
                "base_url": "address of the server; LETTA_BASE_URL, else Letta's cloud",
                "api_key": "key for it; LETTA_API_KEY if left out",
                "name": "name within the layer, `letta` if left out",
                "write": "true: let the layer write derived items, shown in signal blocks",
                "tenant": "tenant of the layer that writes, `default` if left out",
            },
        ),
        BackendSpec(
            name="letta-memfs",
            summary="Letta Code: a memory folder, which is a git repository of Markdown files",
            can=frozenset({Can.AS_OF, Can.LIST_OWNERS, Can.WATCH, Can.WRITE, Can.DEDUPE}),
            open=open_memfs,
            distribution=DISTRIBUTION,
            settings={
                "owner": "whose memory it is, for example agent:coder-a",
                "path": "top of the folder; LETTA_MEMORY_DIR or MEMORY_DIR if left out",
                "name": "name within the layer, `letta-memfs` if left out",
                "write": "true: let the layer commit notes of others to system/collab-signal.md",
            },
        ),
    ]


@hookimpl
def collab_register_commands(app: typer.Typer) -> None:
    """`collab letta attach`, `detach` and `sync`."""
    from collab_layer_letta.commands import register

    register(app)


async def open_letta(
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    name: str = "letta",
    write: bool | str = False,
    tenant: str = "default",
) -> MemoryBackend:
    """Open the store; see the settings above.

    Raises:
        InputError: Neither an address nor a key is known.
    """
    from collab_layer_letta.backend import LettaBackend  # imports the SDK
    from collab_layer_letta.client import made

    return LettaBackend(made(base_url, api_key), name=name, write=yes(write), tenant=tenant)


async def open_memfs(
    *, owner: str, path: str | None = None, name: str = "letta-memfs", write: bool | str = False
) -> MemoryBackend:
    """Open the store; see the settings above.

    Raises:
        InputError: No folder is named, or the owner is no entity.
    """
    from collab_layer_letta.memfs import MemFsBackend

    folder = path or os.environ.get("LETTA_MEMORY_DIR") or os.environ.get("MEMORY_DIR")
    if not folder:
        raise InputError("name the memory folder: `path`, or LETTA_MEMORY_DIR in the environment")
    return MemFsBackend(folder, owner, name=name, write=yes(write))


def yes(value: bool | str) -> bool:
    """A setting as typed on a command line.

    Raises:
        InputError: Neither a yes nor a no.
    """
    if isinstance(value, bool):
        return value
    if value.lower() in ("1", "true", "yes"):
        return True
    if value.lower() in ("0", "false", "no", ""):
        return False
    raise InputError(f"`{value}` is neither true nor false")


__all__ = ["DISTRIBUTION", "collab_register_backends", "collab_register_commands", "open_letta", "open_memfs", "yes"]
