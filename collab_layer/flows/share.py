"""Grants given and ended. Takes effect at the very next read."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, insert

from collab_layer.errors import InputError, InvalidEntityError, NotPermittedError
from collab_layer.flows.tools import Tools
from collab_layer.governance.grants import read_by_others
from collab_layer.graph import merged, names, notices, outbox, policy
from collab_layer.graph.erasing import notices_gone
from collab_layer.graph.ids import next_id
from collab_layer.graph.tables import audit
from collab_layer.types.entity import Entity
from collab_layer.types.scope import EVERYONE, Grant, Level, LevelName, Scope, Sharing
from collab_layer.types.time import FOREVER, micros

KIND = "kind:"


async def grant(
    tools: Tools,
    scope: Scope,
    owner: Entity,
    to: str,
    level: LevelName,
    *,
    purpose: str | None,
    until: datetime | None,
    denied: bool = False,
) -> Grant:
    """Let an audience use the owner's memories, or opt out.

    Raises:
        NotPermittedError: The acting principal is not the owner.
        InputError: The audience, the level or the end cannot be used.
    """
    return await tools.in_thread(_grant, tools, scope, owner, audience_name(to), level, purpose, until, denied)


async def revoke(tools: Tools, scope: Scope, id_: str) -> None:
    """End a grant; texts that nobody else may read any more are dropped in the same commit.

    Raises:
        UnknownIdError: No such grant is in force.
        NotPermittedError: The acting principal is not its owner.
    """
    await tools.in_thread(_revoke, tools, scope, id_)


async def set_policy(tools: Tools, tenant: str, sharing: Sharing) -> None:
    """Record the tenant's default policy."""
    await tools.in_thread(_set_policy, tools, tenant, sharing)


async def lapse(tools: Tools, tenant: str) -> int:
    """What ran out is closed: texts kept for a last reader's grant go, and notices; how many of both ended."""
    return await tools.in_thread(_lapse, tools, tenant)


def audience_name(to: str) -> str:
    """Check who is meant: an entity or group, `kind:agent`, or `tenant`."""
    if to == EVERYONE:
        return to
    try:
        return str(Entity.parse(to))
    except InvalidEntityError as error:
        raise InputError(
            f"`{to[:80]}` is no audience; use an entity or group such as `team:support`, `kind:agent`, or `tenant`"
        ) from error


def _grant(
    tools: Tools,
    scope: Scope,
    owner: Entity,
    to: str,
    level: LevelName,
    purpose: str | None,
    until: datetime | None,
    denied: bool,
) -> Grant:
    if scope.principal not in (None, owner):
        raise NotPermittedError(str(scope.principal), "share", str(owner))
    if level not in policy.LEVELS:
        raise InputError(f"`{level}` is no level; use `facets` or `records`")
    now = tools.now()
    end = FOREVER if until is None else micros(until)
    if end <= now:
        raise InputError("the grant would have ended before it began; choose a later `until`")
    with tools.store.database.write() as connection:
        names.share_with_erasure(connection, scope.tenant)
        id_ = names.always(connection, scope.tenant, owner)
        before = read_by_others(policy.rows(connection, scope.tenant, id_), id_, now)
        grant_id = policy.add(
            connection,
            scope.tenant,
            id_,
            to,
            policy.LEVELS[level],
            purpose=purpose,
            until=end,
            denied=denied,
            now=now,
        )
        if denied:
            merged.split(connection, scope.tenant, id_)
        note(connection, scope, id_, "deny" if denied else "grant", grant_id, now)
        _adjust_texts(connection, scope.tenant, id_, before, now)
    return Grant(id=grant_id, owner=owner, to=to, level=level, purpose=purpose, until=until, denied=denied)


def _revoke(tools: Tools, scope: Scope, id_: str) -> None:
    now = tools.now()
    with tools.store.database.write() as connection:
        owner = policy.owner_of_grant(connection, scope.tenant, id_)
        if scope.principal is not None:
            mine = names.find(connection, scope.tenant, [str(scope.principal)]).get(str(scope.principal))
            if owner is None or mine != owner:
                raise NotPermittedError(str(scope.principal), "revoke", id_)
        before = (
            Level.NONE if owner is None else read_by_others(policy.rows(connection, scope.tenant, owner), owner, now)
        )
        policy.revoke(connection, scope.tenant, id_, now)
        merged.split(connection, scope.tenant, owner)  # what others said of it stays readable
        note(connection, scope, owner, "revoke", id_, now)
        if owner is not None:
            _adjust_texts(connection, scope.tenant, owner, before, now)
    tools.store.database.compact()


def _set_policy(tools: Tools, tenant: str, sharing: Sharing) -> None:
    now = tools.now()
    with tools.store.database.write() as connection:
        if not policy.set_sharing(connection, tenant, sharing, now):
            return
        merged.split(connection, tenant, None)
        note(connection, Scope(tenant=tenant), None, "policy", sharing.reach.value, now)
        owners = policy.owners_with_cards(connection, tenant)
        for owner in owners:
            if read_by_others(policy.rows(connection, tenant, owner), owner, now) < Level.RECORDS:
                _, rev = names.bump(connection, tenant)
                policy.drop_texts(connection, tenant, owner, rev)
        policy.queue_refresh(connection, tenant, owners, now)


def _lapse(tools: Tools, tenant: str) -> int:
    now = tools.now()
    with tools.store.database.read() as connection:
        ended, over = policy.ended(connection, tenant, now), notices.ended(connection, tenant, now)
    if not ended and not over:
        return 0
    with tools.store.database.write() as connection:
        names.lock(connection, tenant)
        for id_, owner in ended:
            policy.close(connection, tenant, id_, now)
            merged.split(connection, tenant, owner)
            if owner is not None and read_by_others(policy.rows(connection, tenant, owner), owner, now) < Level.RECORDS:
                _, rev = names.bump(connection, tenant)
                policy.drop_texts(connection, tenant, owner, rev)
                outbox.disturb(connection, tenant, owner)
        if over:
            notices_gone(connection, tenant, over)
    return len(ended) + len(over)


def _adjust_texts(connection: Connection, tenant: str, owner: int, before: Level, now: int) -> None:
    """A first reader of records queues reading them; the last one gone drops them at once."""
    after = read_by_others(policy.rows(connection, tenant, owner), owner, now)
    if after != before:
        outbox.disturb(connection, tenant, owner)
    if after >= Level.RECORDS > before:
        policy.queue_refresh(connection, tenant, [owner], now)
    elif before >= Level.RECORDS > after:
        _, rev = names.bump(connection, tenant)
        policy.drop_texts(connection, tenant, owner, rev)


def note(connection: Connection, scope: Scope, owner: int | None, action: str, subject: str, now: int) -> None:
    """One row of audit; it goes with its owner."""
    row = {
        "tenant": scope.tenant,
        "id": next_id(),
        "at": now,
        "principal": owner,
        "action": action,
        "subject": subject,
    }
    connection.execute(insert(audit), [row])
