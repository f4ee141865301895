"""What Letta is told of an MCP server of ours, and how one is recognised.

In:   the tenant's mark, an entity, its token, and where the layer is.
Out:  a name, what tool names end in, and the settings for `/v1/mcp-servers/`.
Pure: no SDK, no I/O, no clock.

Letta keeps the tools of all servers in one list by name, and a server that brings a name that
is there already takes that tool over, whoever's it was. A server acts for one entity, so that
without names of its own one agent would soon ask with the token of another. The names of an
entity's tools therefore end in a hash of tenant and entity.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from collab_layer.errors import InputError

if TYPE_CHECKING:
    from collab_layer.types.entity import Entity

Json = dict[str, Any]
Kind = Literal["stdio", "http"]
COMMAND: Final = "collab"
TOKEN, ENDING = "COLLAB_TOKEN", "COLLAB_MCP_SUFFIX"
"""In the environment of `collab mcp`."""
AUTHORIZATION, ENDING_HEADER = "Authorization", "X-Collab-Suffix"
"""Headers of a request to `/mcp`."""
BEARER: Final = "Bearer "
PREFIX: Final = "collab_"
_TENANT, _ENTITY = 8, 12
_FILE: Final = "sqlite:///"


class Named(NamedTuple):
    """The name of a server, and what the names of its tools end in."""

    server: str
    suffix: str


def named(mark: str, entity: Entity) -> Named:
    """The names that belong to an entity of a tenant: letters, digits and `_`, the same every time."""
    whose = _hash(f"{mark}\0{entity}", _ENTITY)
    return Named(f"{prefix_of(mark)}{whose}", f"_{whose}")


def prefix_of(mark: str) -> str:
    """How the names of all servers of a tenant begin."""
    return f"{PREFIX}{_hash(mark, _TENANT)}_"


def stdio(suffix: str, token: str, *, database: str, tenant: str, command: str = COMMAND) -> Json:
    """Settings of `collab mcp`, which Letta starts for each call.

    All but the command goes through the environment, since Letta splits arguments at blanks.
    """
    env = {"COLLAB_URL": database, "COLLAB_TENANT": tenant, "COLLAB_WORKER": "false", TOKEN: token, ENDING: suffix}
    return {"mcp_server_type": "stdio", "command": command, "args": ["mcp"], "env": env}


def http(suffix: str, token: str, *, url: str) -> Json:
    """Settings of the `/mcp` of a `collab serve --mcp`."""
    headers = {AUTHORIZATION: f"{BEARER}{token}", ENDING_HEADER: suffix}
    return {"mcp_server_type": "streamable_http", "server_url": f"{url}/mcp", "custom_headers": headers}


def is_ours(row: Mapping[str, Any], mark: str) -> bool:
    """Whether a registered server is one that the layer of this tenant registered."""
    name = str(row.get("server_name") or "")
    begin = prefix_of(mark)
    ending = _map(row, "env").get(ENDING) or _map(row, "custom_headers").get(ENDING_HEADER)
    return name.startswith(begin) and ending == f"_{name.removeprefix(begin)}"


def token_in(row: Mapping[str, Any]) -> str | None:
    """The token that a registered server is called with."""
    found = _map(row, "env").get(TOKEN) or _map(row, "custom_headers").get(AUTHORIZATION)
    return None if found is None else str(found).removeprefix(BEARER)


def same(row: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Whether a registered server has these settings."""
    return all(row.get(key) == value for key, value in config.items())


def kind_of(row: Mapping[str, Any]) -> Kind:
    """How a registered server is reached."""
    return "stdio" if row.get("mcp_server_type") == "stdio" else "http"


def tag_of(server: str) -> str:
    """The tag that Letta puts on the tools of a server; running a tool it finds the server by it."""
    return f"mcp:{server}"


def checked_database(database: str | None) -> str:
    """Where the database is for another process: a relative path is made absolute.

    Raises:
        InputError: None is given, or it lives in this process alone.
    """
    if not database:
        raise InputError("MCP over stdio needs `database`: the file or database URL of the layer")
    if ":memory:" in database or database.rstrip("/") == "sqlite:":
        raise InputError("a database in memory cannot be opened by the process that Letta starts")
    if database.startswith(_FILE):
        return f"{_FILE}{Path(database.removeprefix(_FILE)).absolute()}"
    return database if "://" in database else str(Path(database).absolute())


def _map(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    given = row.get(key)
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}


def _hash(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


__all__ = [
    "COMMAND",
    "Json",
    "Kind",
    "Named",
    "checked_database",
    "http",
    "is_ours",
    "kind_of",
    "named",
    "prefix_of",
    "same",
    "stdio",
    "tag_of",
    "token_in",
]
