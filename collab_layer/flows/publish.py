"""A text that an owner wants known to a notice for an audience; and how it ends.

In:   the owner's words, whom they are for, and the memories of its own that they rest on.
Out:  one commit: the item with its lineage, whom it is for, a row of audit.
Never opens a source to a reader, and never publishes what reads like an order to a model.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime

import numpy as np
from sqlalchemy import Connection, select

from collab_layer.errors import InputError, NotPermittedError, UnknownIdError
from collab_layer.flows import attest, scrub, share
from collab_layer.flows.share import audience_name, note
from collab_layer.flows.tools import Tools
from collab_layer.governance.limits import check
from collab_layer.graph import limits, names, notices, policy
from collab_layer.graph.derived import Item
from collab_layer.graph.erasing import Removed, notices_gone
from collab_layer.graph.ids import interaction_id, number_of
from collab_layer.graph.tables import cards, interactions
from collab_layer.stages.quarantine import quarantined
from collab_layer.types.entity import Entity, MemoryRef, checked_text
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.facet import FacetKind
from collab_layer.types.graph import Vectors
from collab_layer.types.notice import MAX_CHARACTERS, Notice
from collab_layer.types.scope import Level, Scope
from collab_layer.types.time import FOREVER, micros, moment

MAX_SOURCES = 100
MADE_BY = "its owner"
Source = str | MemoryRef


async def publish(
    tools: Tools,
    scope: Scope,
    owner: Entity,
    text: str,
    to: str,
    sources: Sequence[Source],
    *,
    purpose: str | None,
    until: datetime | None,
) -> Notice:
    """Publish a wording.

    Raises:
        NotPermittedError: The acting principal is not the owner.
        UnknownIdError: A source is unknown, or not the owner's.
        InputError: Text, audience, sources or end cannot be used.
    """
    if scope.principal not in (None, owner):
        raise NotPermittedError(str(scope.principal), "publish for", str(owner))
    audience, words, rests_on = audience_name(to), _words(text), _sources(sources)
    vector = (await tools.embedder.embed([words]))[0]
    known = vector if np.any(vector) else None
    return await tools.in_thread(_publish, tools, scope, owner, words, audience, rests_on, purpose, until, known)


async def revoke(tools: Tools, scope: Scope, id_: str) -> ErasureReceipt:
    """End a grant, or a notice with its words, at once.

    Raises:
        UnknownIdError: No such grant or notice is in force.
        NotPermittedError: The acting principal is not its owner.
    """
    if id_.startswith("d"):
        return await tools.in_thread(_withdraw, tools, scope, id_)
    return await share.revoke(tools, scope, id_)


def _withdraw(tools: Tools, scope: Scope, id_: str) -> ErasureReceipt:
    now, removed = tools.now(), Removed()
    with tools.store.database.write() as connection:
        found = notices.get(connection, scope.tenant, id_)
        if scope.principal is not None:
            name = str(scope.principal)
            if found is None or names.find(connection, scope.tenant, [name]).get(name) != found.owner:
                raise NotPermittedError(name, "revoke", id_)
        if found is None:
            raise UnknownIdError(id_)
        notices_gone(connection, scope.tenant, [id_], removed)
        note(connection, scope, found.owner, "withdraw", id_, now)
        receipt = attest.issue(connection, tools, scope.tenant, id_, removed, action="revoke")
    scrub.at_once(tools)
    return attest.signed(tools, scope.tenant, receipt)


def _publish(
    tools: Tools,
    scope: Scope,
    owner: Entity,
    words: str,
    audience: str,
    sources: Sequence[Source],
    purpose: str | None,
    until: datetime | None,
    vector: Vectors | None,
) -> Notice:
    tenant, now = scope.tenant, tools.now()
    ends = FOREVER if until is None else micros(until)
    if ends <= now:
        raise InputError("the notice would have ended before it began; choose a later `until`")
    with tools.store.database.write() as connection:
        names.share_with_erasure(connection, tenant)
        id_ = names.always(connection, tenant, owner)
        check(limits.of(connection, tenant, now), id_, audience, Level.NONE, purpose, ends, now)
        behind = _owned(connection, tenant, id_, sources)
        item = Item(
            id="d" + secrets.token_hex(15),
            owner=id_,
            kind=FacetKind.NOTICE,
            key=audience,
            text=words,
            confidence=policy.sharing(connection, tenant).delta,
            level=Level.NONE,
            links=(),
            sources=tuple((source, id_, 1 / len(behind)) for source in behind),
            made_by=MADE_BY,
            at=now,
            expires=ends,
        )
        notices.add(connection, tenant, item, audience, purpose, vector, tools.embedder.id)
        policy.raise_version(connection, tenant)
        note(connection, scope, id_, "publish", item.id, now)
    return Notice(id=item.id, owner=owner, to=audience, text=words, purpose=purpose, until=until, at=moment(now))


def _words(text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"a {type(text).__name__} cannot be published; pass a text")
    words = " ".join(checked_text(text).split())
    if not words or len(words) > MAX_CHARACTERS:
        raise InputError(f"publish 1 to {MAX_CHARACTERS} characters, not {len(words)}")
    why = quarantined(text) or quarantined(words)
    if why is not None:
        raise InputError(f"the text is not published: {why}; word it as something that is so, not as an order")
    return words


def _sources(sources: Sequence[Source]) -> list[Source]:
    if isinstance(sources, (str, MemoryRef)) or len(sources) > MAX_SOURCES:
        raise InputError(f"pass at most {MAX_SOURCES} sources, as a list of ids or `MemoryRef`s")
    return [one if isinstance(one, MemoryRef) else str(checked_text(str(one))) for one in sources]


def _owned(connection: Connection, tenant: str, owner: int, sources: Sequence[Source]) -> list[str]:
    """The ids behind the sources, every one the owner's."""
    found: dict[str, None] = {}
    for source in sources:
        ids = _of_ref(connection, tenant, owner, source) if isinstance(source, MemoryRef) else [source]
        mine = ids if isinstance(source, MemoryRef) else [id_ for id_ in ids if _is_of(connection, tenant, owner, id_)]
        if not mine:  # whose it is instead is nobody's business
            raise UnknownIdError(source.id if isinstance(source, MemoryRef) else source)
        found.update(dict.fromkeys(mine))
    return list(found)


def _of_ref(connection: Connection, tenant: str, owner: int, ref: MemoryRef) -> list[str]:
    i = interactions.c
    mine = (i.tenant == tenant) & (i.actor == owner) & (i.backend == ref.backend) & (i.native_id == ref.id)
    return [interaction_id(number) for number in connection.execute(select(i.id).where(mine)).scalars()]


def _is_of(connection: Connection, tenant: str, owner: int, id_: str) -> bool:
    number = number_of(id_)
    if number is None or id_[:1] not in ("i", "c"):
        return False
    i, c = interactions.c, cards.c
    said = select(i.id).where(i.tenant == tenant, i.id == number, i.actor == owner)
    held = select(c.id).where(c.tenant == tenant, c.id == number, c.owner == owner)
    return connection.execute(said if id_[0] == "i" else held).first() is not None


__all__ = ["publish", "revoke"]
