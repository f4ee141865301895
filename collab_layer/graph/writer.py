"""Interactions in, one commit out: the interaction, its edges, and the work it causes.

Idempotent on (actor, key). Embedding and finding links in the text happen later, in the
worker; what the caller linked explicitly is an edge at once, and what a later version or a
statement took the place of is over at once.

Each event counts from its own time, whenever it is told.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select

from collab_layer.errors import InputError, UnknownIdError
from collab_layer.graph import latecomers, membership, spans
from collab_layer.graph import outbox as work
from collab_layer.graph.adjacency import BACK, Adjacency, Kind
from collab_layer.graph.among import one_of
from collab_layer.graph.engine import insert_all
from collab_layer.graph.ids import interaction_id, next_id, number_of
from collab_layer.graph.lean import Lean
from collab_layer.graph.names import Mention, meet, mention, share_with_erasure
from collab_layer.graph.tables import edges, interactions, outbox
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction
from collab_layer.types.time import FOREVER, micros

JOINED, LEFT = "joined", "left"
"""Verbs that make and end membership in a team."""
_CHUNK = 400
_I = interactions.c
_KEYED = select(_I.actor, _I.key, _I.id).where(_I.tenant == bindparam("tenant"), one_of(_I.key, "keys"))
_KEYED_OF_FEW = Lean(_KEYED.where(one_of(_I.actor, "actors")))
_KEYED_OF_MANY = Lean(_KEYED.where(_I.actor > 0))  # so that the index on (tenant, actor, key) is not passed over


def observe(
    connection: Connection, adjacency: Adjacency, tenant: str, batch: Sequence[Interaction], now: int
) -> list[str]:
    """Store a batch in the caller's transaction; the id of each, old or new, in order.

    Raises:
        UnknownIdError: One replaces what its actor never said.
        InputError: One replaces what happened later.
    """
    share_with_erasure(connection, tenant)
    ids = _named(connection, tenant, batch, now)
    known = _known_keys(connection, tenant, batch, ids)
    replaced = _replaced(connection, tenant, batch, ids, now)
    out: list[str] = []
    rows: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    joined: list[tuple[int, int, int]] = []
    left: list[tuple[int, int, int]] = []
    for item in batch:
        key = None if item.key is None else (str(item.actor), item.key)
        if key is not None and key in known:
            out.append(interaction_id(known[key]))
            continue
        number = next_id()
        if key is not None:
            known[key] = number
        out.append(interaction_id(number))
        row = _interaction_row(tenant, number, item, ids, replaced, now)
        rows.append(row)
        if item.verb == LEFT and item.target is not None:
            left.append((row["actor"], row["target"], row["at"]))
        else:
            lines.extend(_edges(tenant, item, ids, row))
            if item.verb == JOINED and item.target is not None:
                joined.append((row["actor"], row["target"], row["at"]))
    if rows:
        pairs = [(row["actor"], row["id"]) for row in rows]
        insert_all(connection, [(interactions, rows), (edges, lines), (outbox, work.rows_of(tenant, pairs))])
        if joined or left:
            membership.settle(connection, adjacency, tenant, joined, left)
        _end_older(connection, adjacency, tenant, rows, now)
        work.queue(connection, tenant, pairs)
    return out


def _named(connection: Connection, tenant: str, batch: Sequence[Interaction], now: int) -> dict[Entity, int]:
    """The ids of all that the batch names."""
    mentions: dict[Entity, Mention] = {}
    for item in batch:
        at = now if item.at is None else micros(item.at)
        for entity in (item.actor, item.target, *item.links):
            if entity is not None:
                mention(mentions, entity, at, by_caller=True)
    met = meet(connection, tenant, mentions, mentions)
    if met.late < now:
        latecomers.note(connection, tenant, met.late)
    return met.ids


def _replaced(
    connection: Connection, tenant: str, batch: Sequence[Interaction], ids: dict[Entity, int], now: int
) -> dict[str, int]:
    """The numbers of what the batch replaces, each an earlier interaction of the same actor."""
    wanted = {item.replaces: number_of(item.replaces) or 0 for item in batch if item.replaces is not None}
    if not wanted:
        return {}
    numbers, i = sorted(set(wanted.values())), interactions.c
    found: dict[int, tuple[int, int]] = {}
    for start in range(0, len(numbers), _CHUNK):
        query = select(i.id, i.actor, i.at).where(i.tenant == tenant, i.id.in_(numbers[start : start + _CHUNK]))
        found.update((row.id, (row.actor, row.at)) for row in connection.execute(query))
    for item in batch:
        if item.replaces is not None:
            actor, at = found.get(wanted[item.replaces], (None, 0))
            if actor != ids[item.actor]:  # what others said is as unknown as what nobody said
                raise UnknownIdError(item.replaces)
            if (now if item.at is None else micros(item.at)) < at:
                raise InputError(f"`{item.replaces}` happened later than what is to replace it; correct `at`")
    return wanted


def _end_older(
    connection: Connection, adjacency: Adjacency, tenant: str, rows: Sequence[dict[str, Any]], now: int
) -> None:
    """Older versions of the same memories, and what was replaced, hold until these; these perhaps not any more."""
    refs = {(row["backend"], row["native_id"]) for row in rows if row["backend"] is not None}
    several = {ref: versions for ref, versions in spans.told(connection, tenant, refs).items() if len(versions) > 1}
    numbers = {version.id for versions in several.values() for version in versions}
    numbers |= {row["replaces"] for row in rows if row["replaces"] is not None}
    if numbers:
        spans.bring(connection, adjacency, tenant, spans.ends(connection, tenant, numbers), now)


def edge_rows(
    tenant: str,
    src: int,
    dst: int,
    kind: Kind,
    *,
    weight: float,
    at: int,
    now: int,
    interaction: int,
    valid_to: int = FOREVER,
) -> list[dict[str, Any]]:
    """One edge in both directions."""
    base = {
        "tenant": tenant,
        "weight": weight,
        "at": at,
        "valid_to": valid_to,
        "recorded_at": now,
        "interaction": interaction,
        "folded": False,
    }
    there = {**base, "id": next_id(), "src": src, "dst": dst, "kind": int(kind)}
    return [there, {**base, "id": next_id(), "src": dst, "dst": src, "kind": int(BACK[kind])}]


def _edges(tenant: str, item: Interaction, ids: dict[Entity, int], row: dict[str, Any]) -> list[dict[str, Any]]:
    common = {"at": row["at"], "now": row["recorded_at"], "interaction": row["id"]}
    actor = row["actor"]
    lines: list[dict[str, Any]] = []
    if item.target is not None and item.target != item.actor:
        kind = Kind.MEMBER_OF if item.verb == JOINED else Kind.INTERACTED
        lines += edge_rows(tenant, actor, row["target"], kind, weight=item.weight, **common)
    for link in item.links:
        if link not in (item.actor, item.target):
            lines += edge_rows(tenant, actor, ids[link], Kind.MENTIONS, weight=item.weight, **common)
    return lines


def _interaction_row(
    tenant: str, number: int, item: Interaction, ids: dict[Entity, int], replaced: dict[str, int], now: int
) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "id": number,
        "actor": ids[item.actor],
        "target": None if item.target is None else ids[item.target],
        "verb": item.verb,
        "text": item.text,
        "links": json.dumps([ids[link] for link in item.links]) if item.links else "[]",
        "outcome": item.outcome,
        "at": now if item.at is None else micros(item.at),
        "recorded_at": now,
        "key": item.key,
        "weight": item.weight,
        "backend": None if item.ref is None else item.ref.backend,
        "native_id": None if item.ref is None else item.ref.id,
        "version": None if item.ref is None else item.ref.version,
        "replaces": None if item.replaces is None else replaced[item.replaces],
    }


def _known_keys(
    connection: Connection, tenant: str, batch: Sequence[Interaction], ids: dict[Entity, int]
) -> dict[tuple[str, str], int]:
    keyed = [item for item in batch if item.key is not None]
    if not keyed:
        return {}
    names = {ids[item.actor]: str(item.actor) for item in keyed}
    wanted = [item.key for item in keyed]
    known: dict[tuple[str, str], int] = {}
    for start in range(0, len(wanted), _CHUNK):
        given: dict[str, Any] = {"tenant": tenant, "keys": wanted[start : start + _CHUNK]}
        if len(names) <= _CHUNK:
            rows = _KEYED_OF_FEW.rows(connection, {**given, "actors": list(names)})
        else:
            rows = _KEYED_OF_MANY.rows(connection, given)
        known.update({(names[actor], key): number for actor, key, number in rows if actor in names})
    return known
