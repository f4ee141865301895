"""What this package adds to the layer: one store. Mem0 is imported when it is opened.

In:   the hook.
Out:  a `BackendSpec`.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

from collab_layer.errors import InputError
from collab_layer.plugins.hookspecs import hookimpl
from collab_layer.plugins.specs import BackendSpec
from collab_layer.ports.backend import Can, MemoryBackend


@hookimpl
def collab_register_backends() -> list[BackendSpec]:
    """Mem0, self-hosted or its service."""
    return [
        BackendSpec(
            name="mem0",
            summary="Mem0 2.x: a self-hosted Memory, or Mem0's service",
            can=frozenset({Can.SEARCH, Can.WATCH, Can.LIST_OWNERS, Can.EMBED, Can.WRITE}),
            open=open_backend,
            distribution="collab-layer-mem0",
            settings={
                "config": "path of a JSON file with Mem0's configuration, or the configuration itself",
                "api_key": "key for Mem0's service, instead of a configuration",
                "host": "URL of Mem0's service, if it is not the usual one",
                "name": "name within the layer, `mem0` if left out",
                "write": "true: let the layer write derived items, under agent_id `collab`",
            },
        )
    ]


async def open_backend(
    *,
    config: str | dict[str, Any] | None = None,
    api_key: str | None = None,
    host: str | None = None,
    name: str = "mem0",
    write: bool | str = False,
) -> MemoryBackend:
    """Open the store; see the settings above.

    Raises:
        InputError: Not exactly one of `config` and `api_key`, or a file that is no JSON.
        BackendError: The store or the service cannot be opened.
    """
    if (config is None) == (api_key is None):
        raise InputError("give Mem0 either `config`, for a self-hosted store, or `api_key`, for its service")
    settings = None if config is None else _settings(config)
    wanted = write if isinstance(write, bool) else write.lower() in ("1", "true", "yes")
    return await asyncio.to_thread(_open, settings, api_key, host, name, wanted)


def _settings(config: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(config, dict):
        return config
    try:
        read = json.loads(Path(config).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"`{config}` cannot be read as Mem0's configuration: {error}") from error
    if not isinstance(read, dict):
        raise InputError(f"`{config}` holds no JSON object")
    return cast("dict[str, Any]", read)


def _open(
    settings: dict[str, Any] | None, api_key: str | None, host: str | None, name: str, write: bool
) -> MemoryBackend:
    from collab_layer_mem0.backend import backend_for  # imports Mem0
    from collab_layer_mem0.client import made

    return backend_for(made(settings, api_key, host, name), name=name, write=write)
