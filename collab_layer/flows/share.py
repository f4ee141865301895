"""Grants given and ended. Takes effect at the very next read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, insert

from collab_layer.errors import InputError, InvalidEntityError, NotPermittedError, UnknownIdError
from collab_layer.flows import attest, scrub
from collab_layer.flows.tools import Tools
from collab_layer.governance.grants import GrantRow, audience, read_by_others
from collab_layer.governance.limits import check
from collab_layer.graph import derived, limits, merged, names, notices, outbox, policy, receipts
from collab_layer.graph.cards import card_id
from collab_layer.graph.erasing import Removed, notices_gone, withdrawn
from collab_layer.graph.ids import next_id
from collab_layer.graph.tables import audit
from collab_layer.types.entity import OWNER_KINDS, Entity
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.facet import FacetKind
from collab_layer.types.review import Blocked
from collab_layer.types.scope import EVERYONE, Grant, Level, LevelName, Scope, Sharing
from collab_layer.types.time import FOREVER, micros, moment

KIND = "kind:"
LEVEL_NAMES: dict[Level, LevelName] = {Level.FACETS: "facets", Level.RECORDS: "records"}


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
        PolicyError: It is more than the policy of the tenant or of a team allows.
    """
    return await tools.in_thread(_grant, tools, scope, owner, audience_name(to), level, purpose, until, denied)


async def revoke(tools: Tools, scope: Scope, id_: str) -> ErasureReceipt:
    """End a grant; texts that nobody else may read any more are dropped in the same commit.

    So is whatever holds words of the owner for those who may no longer read it; copies in stores are taken back.

    Raises:
        UnknownIdError: No such grant is in force.
        NotPermittedError: The acting principal is not its owner.
    """
    return await tools.in_thread(_revoke, tools, scope, id_)


async def listed(tools: Tools, scope: Scope, owner: Entity | None) -> list[Grant]:
    """Grants and opt-outs in force, newest first; the principal's own, or for the operator whomever's.

    Raises:
        NotPermittedError: A principal asks for somebody else's.
    """
    if scope.principal is not None and owner not in (None, scope.principal):
        raise NotPermittedError(str(scope.principal), "list the grants of", str(owner))
    return await tools.in_thread(_listed, tools, scope.tenant, owner or scope.principal)


async def unblock(tools: Tools, tenant: str, entity: Entity) -> None:
    """Let a principal be read again by whom its grants let.

    Raises:
        UnknownIdError: It is not blocked.
    """
    await tools.in_thread(_unblock, tools, tenant, entity)


async def blocked(tools: Tools, tenant: str) -> list[Blocked]:
    """Principals that nobody else reads, by the operator's word; oldest first."""
    return await tools.in_thread(_blocked, tools, tenant)


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
        if not denied:
            check(limits.of(connection, scope.tenant, now), id_, to, policy.LEVELS[level], purpose, end, now)
        before = policy.shared(connection, scope.tenant, id_, now)
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
        note(connection, scope, id_, "deny" if denied else "grant", grant_id, now)
        lost = _adjust_texts(connection, scope.tenant, id_, before, now)
        if denied:
            _close(tools, connection, scope.tenant, id_, lost, now)
    if denied:
        scrub.at_once(tools)
    return Grant(id=grant_id, owner=owner, to=to, level=level, purpose=purpose, until=until, denied=denied)


def _revoke(tools: Tools, scope: Scope, id_: str) -> ErasureReceipt:
    tenant, now, removed = scope.tenant, tools.now(), Removed()
    with tools.store.database.write() as connection:
        names.lock(connection, tenant)
        owner = policy.owner_of_grant(connection, tenant, id_)
        if scope.principal is not None:
            mine = names.find(connection, tenant, [str(scope.principal)]).get(str(scope.principal))
            if owner is None or mine != owner or id_.startswith(policy.BLOCK):
                raise NotPermittedError(str(scope.principal), "revoke", id_)
        before = Level.NONE if owner is None else policy.shared(connection, tenant, owner, now)
        policy.revoke(connection, tenant, id_, now)
        note(connection, scope, owner, "revoke", id_, now)
        if owner is None:
            merged.split(connection, tenant, None)
        else:
            lost = _adjust_texts(connection, tenant, owner, before, now)
            removed.name("cards", map(card_id, lost))
            removed.add("texts", len(lost))
            _withdraw(tools, connection, tenant, owner, now, removed)
        receipt = attest.issue(connection, tools, tenant, id_, removed, action="revoke")
    scrub.at_once(tools)
    return attest.signed(tools, tenant, receipt)


def block(tools: Tools, connection: Connection, tenant: str, owner: int) -> None:
    """Deny everybody, until the operator takes it back; again changes nothing."""
    if policy.blocks(connection, tenant, owner):
        return
    now = tools.now()
    before = policy.shared(connection, tenant, owner, now)
    id_ = policy.add(
        connection,
        tenant,
        owner,
        EVERYONE,
        Level.FACETS,
        purpose=None,
        until=FOREVER,
        denied=True,
        now=now,
        prefix=policy.BLOCK,
    )
    note(connection, Scope(tenant=tenant), owner, "block", id_, now)
    _adjust_texts(connection, tenant, owner, before, now)
    merged.split(connection, tenant, owner)


def _listed(tools: Tools, tenant: str, owner: Entity | None) -> list[Grant]:
    with tools.store.database.read() as connection:
        id_ = None if owner is None else names.find(connection, tenant, [str(owner)]).get(str(owner))
        if owner is not None and id_ is None:
            return []
        held = policy.in_force(connection, tenant, tools.now(), id_)
        called = names.names_of(connection, tenant, [row.owner for _, row in held if row.owner is not None])
        return [
            Grant(
                id=grant_id,
                owner=None if row.owner is None else Entity.parse(called[row.owner]),
                to=row.audience,
                level=LEVEL_NAMES[row.level],
                purpose=row.purpose,
                until=None if row.until >= FOREVER else moment(row.until),
                denied=row.denied,
            )
            for grant_id, row in held
        ]


def _unblock(tools: Tools, tenant: str, entity: Entity) -> None:
    with tools.store.database.read() as connection:
        owner = names.find(connection, tenant, [str(entity)]).get(str(entity))
        held = [] if owner is None else policy.blocks(connection, tenant, owner)
    if not held:
        raise UnknownIdError(str(entity))
    now = tools.now()
    with tools.store.database.write() as connection:
        names.lock(connection, tenant)
        for id_, whose, _ in held:
            before = policy.shared(connection, tenant, whose, now)
            policy.revoke(connection, tenant, id_, now)
            note(connection, Scope(tenant=tenant), whose, "unblock", id_, now)
            _adjust_texts(connection, tenant, whose, before, now)


def _blocked(tools: Tools, tenant: str) -> list[Blocked]:
    with tools.store.database.read() as connection:
        held = policy.blocks(connection, tenant)
        called = names.names_of(connection, tenant, [owner for _, owner, _ in held])
        return [Blocked(entity=Entity.parse(called[owner]), since=moment(since)) for _, owner, since in held]


def _set_policy(tools: Tools, tenant: str, sharing: Sharing) -> None:
    now = tools.now()
    with tools.store.database.write() as connection:
        if not policy.set_sharing(connection, tenant, sharing, now):
            return
        merged.split(connection, tenant, None)
        note(connection, Scope(tenant=tenant), None, "policy", sharing.reach.value, now)
        texts_anew(tools, connection, tenant, now)


def texts_anew(tools: Tools, connection: Connection, tenant: str, now: int) -> None:
    """A policy changed: owners that nobody may quote any more lose their texts, and all are read again."""
    owners = policy.owners_with_cards(connection, tenant)
    for owner in owners:
        if policy.shared(connection, tenant, owner, now) < Level.RECORDS:
            _close(tools, connection, tenant, owner, _texts_gone(connection, tenant, owner), now)
    outbox.queue_refresh(connection, tenant, owners)


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
            if owner is None:
                merged.split(connection, tenant, None)
                continue
            lost: list[int] = []
            if policy.shared(connection, tenant, owner, now) < Level.RECORDS:
                lost = _texts_gone(connection, tenant, owner)
                outbox.disturb(connection, tenant, owner)
            _close(tools, connection, tenant, owner, lost, now)
        if over:
            notices_gone(connection, tenant, over)
            receipts.await_file(connection, tenant)
    return len(ended) + len(over)


def _adjust_texts(connection: Connection, tenant: str, owner: int, before: Level, now: int) -> list[int]:
    """A first reader of records queues reading them; the last one gone drops them at once: of which cards."""
    after = policy.shared(connection, tenant, owner, now)
    if after != before:
        outbox.disturb(connection, tenant, owner)
    if after >= Level.RECORDS > before:
        outbox.queue_refresh(connection, tenant, [owner])
    elif before >= Level.RECORDS > after:
        return _texts_gone(connection, tenant, owner)
    return []


def _texts_gone(connection: Connection, tenant: str, owner: int) -> list[int]:
    """Drop the words of an owner's cards: of which."""
    _, rev = names.bump(connection, tenant)
    return policy.drop_texts(connection, tenant, owner, rev)


def _close(tools: Tools, connection: Connection, tenant: str, owner: int, lost: Sequence[int], now: int) -> None:
    """As `_withdraw`, where nobody gets a receipt; words of these cards are lost too."""
    removed = Removed()
    _withdraw(tools, connection, tenant, owner, now, removed)
    if lost or removed.rows:
        receipts.await_file(connection, tenant)


def _withdraw(tools: Tools, connection: Connection, tenant: str, owner: int, now: int, removed: Removed) -> None:
    """Take back what its readers may no longer have of an owner; copies in stores are fetched.

    Whatever holds its words is erased. What is distilled of a crowd is hidden: it is nobody's words.
    """
    merged.split(connection, tenant, owner)  # what others said of it stays readable
    of_owner = policy.rows(connection, tenant, now, owner)
    called = names.Called(connection, tenant)
    levels: dict[int, Level] = {}
    words, copies = list[str](), list[str]()
    for item, reader, level, kind in derived.resting_on(connection, tenant, owner):
        if reader not in levels:
            levels[reader] = _level(tools, connection, tenant, reader, owner, of_owner, called, now)
        if levels[reader] < level:
            distilled = level < Level.RECORDS and kind is not FacetKind.UPDATE
            (copies if distilled else words).append(item)
    withdrawn(connection, tenant, owner, words, removed)
    if merged.retract(connection, tenant, copies):
        removed.name("derived", copies)


def _level(
    tools: Tools,
    connection: Connection,
    tenant: str,
    reader: int,
    owner: int,
    of_owner: Sequence[GrantRow],
    called: names.Called,
    now: int,
) -> Level:
    """The most that a reader may have of an owner, for any purpose; of a thing, the most that anybody may."""
    if called[reader].partition(":")[0] not in OWNER_KINDS:
        return read_by_others(of_owner, owner, now)
    purposes = {None, *(row.purpose for row in of_owner)}.union(*(row.purposes or () for row in of_owner))
    who = (policy.readers(connection, tools.store.adjacency, tenant, [reader], one, called)[0] for one in purposes)
    return max(audience(of_owner, one, now).level(owner) for one in who)


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
