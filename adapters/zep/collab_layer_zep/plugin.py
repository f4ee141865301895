"""What this package adds to the layer: one store. Zep's SDK is imported when it is opened.

In:   the hook.
Out:  a `BackendSpec`.
"""

from __future__ import annotations

from collab_layer.errors import InputError
from collab_layer.plugins.hookspecs import hookimpl
from collab_layer.plugins.specs import BackendSpec
from collab_layer.ports.backend import Can, MemoryBackend


@hookimpl
def collab_register_backends() -> list[BackendSpec]:
    """Zep Cloud, by its v4 API."""
    return [
        BackendSpec(
            name="zep",
            summary="Zep Cloud 4: facts of users and standalone graphs, with a time axis",
            can=frozenset({Can.SEARCH, Can.AS_OF, Can.LIST_OWNERS, Can.ERASE, Can.WRITE, Can.DEDUPE}),
            open=open_backend,
            distribution="collab-layer-zep",
            settings={
                "api_key": "key of the project; ZEP_API_KEY if left out",
                "base_url": "address of the v4 API, if it is not Zep's own",
                "name": "name within the layer, `zep` if left out",
                "write": "true: let the layer write derived items, into graphs named `collab:for:...`",
                "ledger": "SQLite file for what is written, `collab-zep.db` if left out",
                "timeout_s": "seconds for one request, 30 if left out",
                "speakers": "whom names in threads stand for: `Ben B.=user:ben, Annie=user:ann`",
            },
        )
    ]


async def open_backend(
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    name: str = "zep",
    write: bool | str = False,
    ledger: str = "collab-zep.db",
    timeout_s: float | str = 30.0,
    speakers: str = "",
) -> MemoryBackend:
    """Open the store; see the settings above. Zep is asked at the first call.

    Raises:
        InputError: No key, a time-out that is no number above 0, or speakers that do not read as names and entities.
        ZepVersionError: The address of the v3 API, or an SDK of v3.
    """
    try:
        patience = float(timeout_s)
    except ValueError as error:
        raise InputError(f"timeout_s must be a number of seconds, not {timeout_s!r}") from error
    named = [part.partition("=") for part in speakers.split(",") if part.strip()]
    if not all(name.strip() and sign and whose.strip() for name, sign, whose in named):
        raise InputError(f"speakers must read `Ben B.=user:ben, Annie=user:ann`, not {speakers!r}")
    people = {name.strip(): whose.strip() for name, _, whose in named}
    wanted = write if isinstance(write, bool) else write.lower() in ("1", "true", "yes")

    from collab_layer_zep.backend import ZepBackend  # imports Zep's SDK
    from collab_layer_zep.client import made

    client = made(api_key, base_url)
    return ZepBackend(client, name=name, write=wanted, ledger=ledger, timeout_s=patience, speakers=people)


__all__ = ["collab_register_backends", "open_backend"]
