"""Rule sets that a tenant keeps, and which rules it uses.

What is in use is one row of `settings`: a preset's name or the hash of a stored set. Choosing
raises the tenant's policy version, which every read asks for anyway: other processes see the
change at their next read, and cached contexts end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, select, update

from collab_layer.graph import names
from collab_layer.graph.engine import upsert
from collab_layer.graph.tables import rule_sets, settings, tenants

IN_USE = "rules"
HASH = 64
"""Characters of a whole hash."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A rule set as kept; `tree` and `facts` are JSON."""

    hash: str
    tree: str
    made_by: str
    facts: str
    at: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rules a tenant uses: a preset by name, or a stored set by hash.

    Attributes:
        preset: Its name, or None.
        hash: Of the set, or None.
        tree: Of the set as JSON; None for a preset, and for a set that is gone.
    """

    preset: str | None = None
    hash: str | None = None
    tree: str | None = None


def put(connection: Connection, tenant: str, one: Stored) -> None:
    """Keep a set; the same rules made again take the place of the older row."""
    names.ensure(connection, tenant)
    row = {"tenant": tenant, "hash": one.hash, "tree": one.tree, "made_by": one.made_by}
    row |= {"facts": one.facts, "at": one.at}
    upsert(connection, rule_sets, [row], update=("tree", "made_by", "facts", "at"))


def listed(connection: Connection, tenant: str) -> list[Stored]:
    """All of a tenant's sets, newest first."""
    r = rule_sets.c
    query = select(rule_sets).where(r.tenant == tenant).order_by(r.at.desc(), r.hash)
    return [_stored(row) for row in connection.execute(query)]


def beginning(connection: Connection, tenant: str, start: str) -> list[Stored]:
    """The sets whose hash begins so, at most two; `start` is hexadecimal."""
    r = rule_sets.c
    query = select(rule_sets).where(r.tenant == tenant, r.hash.startswith(start, autoescape=True))
    return [_stored(row) for row in connection.execute(query.order_by(r.hash).limit(2))]


def chosen(connection: Connection, tenant: str) -> Choice | None:
    """What the tenant uses; None where it never chose, or went back to the deployment's own."""
    s, r = settings.c, rule_sets.c
    text = connection.execute(select(s.value).where(s.tenant == tenant, s.name == IN_USE)).scalar()
    if text is None:
        return None
    given: Mapping[str, Any] = json.loads(text)
    if "preset" in given:
        return Choice(preset=str(given["preset"]))
    hash_ = str(given["hash"])
    tree = connection.execute(select(r.tree).where(r.tenant == tenant, r.hash == hash_)).scalar()
    return Choice(hash=hash_, tree=tree)


def choose(connection: Connection, tenant: str, choice: Choice | None) -> None:
    """Use other rules from the next read on; None goes back to the deployment's own."""
    names.ensure(connection, tenant)
    if choice is None:
        connection.execute(delete(settings).where(settings.c.tenant == tenant, settings.c.name == IN_USE))
    else:
        value = {"hash": choice.hash} if choice.preset is None else {"preset": choice.preset}
        row = {"tenant": tenant, "name": IN_USE, "value": json.dumps(value)}
        upsert(connection, settings, [row], update=("value",))
    connection.execute(update(tenants).where(tenants.c.tenant == tenant).values(policy=tenants.c.policy + 1))


def _stored(row: Row[Any]) -> Stored:
    return Stored(row.hash, row.tree, row.made_by, row.facts, row.at)


__all__ = ["HASH", "Choice", "Stored", "beginning", "choose", "chosen", "listed", "put"]
