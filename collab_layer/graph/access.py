"""Access tokens in the database: digests, never a secret.

In:   a tenant, an id, a connection.
Out:  `Token`s, and the digest that a secret must have.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, insert, select, update

from collab_layer.errors import UnknownIdError
from collab_layer.graph.tables import tokens
from collab_layer.types.access import Token
from collab_layer.types.entity import Entity
from collab_layer.types.time import micros, moment


class Held(NamedTuple):
    """A token and the digest of its secret, 64 hexadecimal digits."""

    token: Token
    digest: str


def add(connection: Connection, tenant: str, token: Token, digest: str) -> None:
    """Store a token that was just issued."""
    row = {
        "tenant": tenant,
        "id": token.id,
        "digest": digest,
        "principal": str(token.principal),
        "purpose": token.purpose,
        "created": micros(token.created),
        "until": micros(token.until),
        "revoked": None,
    }
    connection.execute(insert(tokens), [row])


def find(connection: Connection, tenant: str, id_: str) -> Held | None:
    """The token with that id, ended ones too; None if there is none."""
    row = connection.execute(select(tokens).where(tokens.c.tenant == tenant, tokens.c.id == id_)).first()
    return None if row is None else Held(_token(row), row.digest)


def listed(connection: Connection, tenant: str) -> list[Token]:
    """Every token of the tenant, newest first, ended ones too."""
    rows = connection.execute(
        select(tokens).where(tokens.c.tenant == tenant).order_by(tokens.c.created.desc(), tokens.c.id)
    )
    return [_token(row) for row in rows]


def revoke(connection: Connection, tenant: str, id_: str, now: int) -> None:
    """End a token at once.

    Raises:
        UnknownIdError: No such token, or it was revoked before.
    """
    ended = connection.execute(
        update(tokens)
        .where(tokens.c.tenant == tenant, tokens.c.id == id_, tokens.c.revoked.is_(None))
        .values(revoked=now)
    ).rowcount
    if not ended:
        raise UnknownIdError(id_)


def drop(connection: Connection, tenant: str, principal: str) -> int:
    """Remove every token of an entity that is being erased; how many."""
    return connection.execute(delete(tokens).where(tokens.c.tenant == tenant, tokens.c.principal == principal)).rowcount


def _token(row: Any) -> Token:
    return Token(
        id=row.id,
        principal=Entity.parse(row.principal),
        purpose=row.purpose,
        created=moment(row.created),
        until=moment(row.until),
        revoked=None if row.revoked is None else moment(row.revoked),
    )
