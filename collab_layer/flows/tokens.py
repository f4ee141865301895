"""Tokens issued, verified, ended. A token is looked up at every use, so an end holds at once.

Every way in which a token can be wrong ends in the same error, so that a bearer learns
nothing about tokens of others.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta

from sqlalchemy import Connection, insert

from collab_layer.errors import InputError, TokenRefusedError
from collab_layer.flows.tools import Tools
from collab_layer.graph import access, names
from collab_layer.graph.ids import next_id
from collab_layer.graph.tables import audit
from collab_layer.types.access import Bearer, NewToken, Token
from collab_layer.types.entity import Entity
from collab_layer.types.scope import Scope
from collab_layer.types.time import micros, moment

DAYS = 90
"""How long a token holds if nothing was said."""
_AUDIENCES = frozenset({"kind", "peer"})
"""Kinds that name an audience or a pseudonym, nobody who could act."""
_NO_DIGEST = "0" * 64


async def issue(tools: Tools, tenant: str, principal: Entity, purpose: str | None, until: datetime | None) -> NewToken:
    """Make a token for one entity, which becomes known by it.

    Raises:
        InputError: It would have ended already, or the entity is an audience and nobody who acts.
    """
    return await tools.in_thread(_issue, tools, tenant, principal, purpose, until)


async def listed(tools: Tools, tenant: str) -> list[Token]:
    """Every token of the tenant, newest first."""
    return await tools.in_thread(_listed, tools, tenant)


async def revoke(tools: Tools, tenant: str, id_: str) -> None:
    """End a token.

    Raises:
        UnknownIdError: No such token is in force.
    """
    await tools.in_thread(_revoke, tools, tenant, id_)


async def verify(tools: Tools, text: str) -> Scope:
    """Whom the bearer of a token acts for, where, and for what.

    Raises:
        TokenRefusedError: Malformed, unknown, expired or revoked.
        StoreError: The database cannot tell; then nobody gets in.
    """
    bearer = Bearer.read(text)
    if bearer is None:
        raise TokenRefusedError
    held = await tools.in_thread(_held, tools, bearer)
    matches = hmac.compare_digest(_digest(bearer.secret), _NO_DIGEST if held is None else held.digest)
    if held is None or not matches or held.token.revoked is not None or micros(held.token.until) <= tools.now():
        raise TokenRefusedError
    return Scope(tenant=bearer.tenant, principal=held.token.principal, purpose=held.token.purpose)


def _issue(tools: Tools, tenant: str, principal: Entity, purpose: str | None, until: datetime | None) -> NewToken:
    now = tools.now()
    end = moment(now) + timedelta(days=DAYS) if until is None else until
    if micros(end) <= now:
        raise InputError("the token would have ended before it began; choose a later `until`")
    if principal.kind in _AUDIENCES:
        raise InputError(f"`{principal}` is nobody who acts; issue the token for an entity such as `agent:coder-a`")
    bearer = Bearer.new(tenant)
    token = NewToken(
        id=bearer.id, principal=principal, purpose=purpose, created=moment(now), until=end, text=bearer.text()
    )
    with tools.store.database.write() as connection:
        names.share_with_erasure(connection, tenant)
        id_ = names.resolve(connection, tenant, [principal])[principal]
        access.add(connection, tenant, token, _digest(bearer.secret))
        _note(connection, tenant, id_, "issue_token", token.id, now)
    return token


def _listed(tools: Tools, tenant: str) -> list[Token]:
    with tools.store.database.read() as connection:
        return access.listed(connection, tenant)


def _revoke(tools: Tools, tenant: str, id_: str) -> None:
    now = tools.now()
    with tools.store.database.write() as connection:
        access.revoke(connection, tenant, id_, now)
        _note(connection, tenant, None, "revoke_token", id_, now)


def _held(tools: Tools, bearer: Bearer) -> access.Held | None:
    with tools.store.database.read() as connection:
        return access.find(connection, bearer.tenant, bearer.id)


def _digest(secret: str) -> str:
    # 256 random bits need no salt and no slow hash: there is nothing to guess.
    return hashlib.sha256(secret.encode()).hexdigest()


def _note(connection: Connection, tenant: str, principal: int | None, action: str, subject: str, now: int) -> None:
    row = {"tenant": tenant, "id": next_id(), "at": now, "principal": principal, "action": action, "subject": subject}
    connection.execute(insert(audit), [row])
