"""Rules by name, by hash or as a tree, to what their users see; and back to a row.

In:   a snapshot of a tenant, what the caller means.
Out:  `Found`: compiled, described, and how a tenant would choose it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from collab_layer.errors import InputError, InvalidRuleError
from collab_layer.flows.rulebook import RuleBook
from collab_layer.graph import rule_sets
from collab_layer.graph.rule_sets import Choice, Stored
from collab_layer.stages.rules import Scorer
from collab_layer.types.rules import RuleSet
from collab_layer.types.time import moment

Which = str | Mapping[str, Any]
"""A preset's name, the beginning of a stored set's hash, or a tree, as JSON text too."""
BY_FILE, BY_PRESET = "file", "preset"
LEAST_HASH = 6
_HASH = re.compile(rf"[0-9a-f]{{{LEAST_HASH},{rule_sets.HASH}}}")
_KEPT = ("facts", "findings", "usage")


@dataclass(frozen=True, slots=True)
class Found:
    """Rules that load.

    Attributes:
        scorer: Compiled.
        shown: As users see them.
        choice: How a tenant names them; None for a tree that is not stored.
    """

    scorer: Scorer
    shown: RuleSet
    choice: Choice | None = None


def find(book: RuleBook, connection: Connection, tenant: str, which: Which) -> Found:
    """What the caller means, compiled.

    Raises:
        InputError: There is no such preset or set, or several sets begin so.
        InvalidRuleError: The tree cannot be used here.
    """
    now = book.in_use(connection, tenant).scorer.hash
    if not isinstance(which, str) or which.lstrip().startswith("{"):
        scorer = book.compiled(which)
        return Found(scorer, _described(scorer, BY_FILE, now))
    if which in book.presets:
        scorer = book.compiled(book.presets[which])
        return Found(scorer, _described(scorer, BY_PRESET, now), Choice(preset=which))
    row = _row(book, connection, tenant, which)
    scorer = book.compiled(row.tree)
    return Found(scorer, _with_row(_described(scorer, row.made_by, now), row), Choice(hash=row.hash, tree=row.tree))


def in_use(book: RuleBook, connection: Connection, tenant: str) -> Found:
    """The rules that choose the tenant's neighbours now."""
    used = book.in_use(connection, tenant)
    choice, now = used.choice, used.scorer.hash
    if used.why is None and choice is not None and choice.hash is not None:
        return find(book, connection, tenant, choice.hash)
    name = used.scorer.name
    preset = name in book.presets and book.compiled(book.presets[name]).hash == now
    shown = _described(used.scorer, BY_PRESET if preset else BY_FILE, now)
    return Found(used.scorer, shown.model_copy(update={"findings": () if used.why is None else (used.why,)}), choice)


def listed(book: RuleBook, connection: Connection, tenant: str) -> list[RuleSet]:
    """Every stored set, newest first; one that does not load says so in its words."""
    now = book.in_use(connection, tenant).scorer.hash
    out: list[RuleSet] = []
    for row in rule_sets.listed(connection, tenant):
        try:
            shown = _described(book.compiled(row.tree), row.made_by, now)
        except InvalidRuleError as error:
            tree = json.loads(row.tree)
            words = f"cannot be loaded here: {error}"
            shown = RuleSet(hash=row.hash, name=str(tree["name"]), tree=tree, words=words, made_by=row.made_by)
        out.append(_with_row(shown, row))
    return out


def row_of(shown: RuleSet, at: int) -> Stored:
    """The row that keeps a set; the topics that a model was shown are not kept."""
    body = shown.model_dump(mode="json", include=set(_KEPT))
    if body["facts"] is not None:
        body["facts"]["topics"] = []
    tree = json.dumps(shown.tree, sort_keys=True, allow_nan=False)
    return Stored(shown.hash, tree, shown.made_by, json.dumps(body, allow_nan=False), at)


def _described(scorer: Scorer, made_by: str, now: str) -> RuleSet:
    tree, used = scorer.parsed.canonical, scorer.hash == now
    return RuleSet(hash=scorer.hash, name=scorer.name, tree=tree, words=scorer.explain(), made_by=made_by, in_use=used)


def _with_row(shown: RuleSet, row: Stored) -> RuleSet:
    return RuleSet.model_validate({**dict(shown), **json.loads(row.facts), "at": moment(row.at)})


def _row(book: RuleBook, connection: Connection, tenant: str, which: str) -> Stored:
    rows = rule_sets.beginning(connection, tenant, which) if _HASH.fullmatch(which) else []
    if len(rows) > 1:
        raise InputError(f"several rule sets begin with `{which}`; write more of the hash")
    if not rows:
        known = ", ".join(f"`{name}`" for name in sorted(book.presets))
        raise InputError(
            f"there is no preset and no stored rule set `{which[:80]}`; presets are {known}, a stored set is named "
            f"by the first {LEAST_HASH} or more characters of its hash"
        )
    return rows[0]


__all__ = ["BY_FILE", "Found", "Which", "find", "in_use", "listed", "row_of"]
