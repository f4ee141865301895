"""Who reads whom in GateMem: the grant mappings G1 and G2, frozen in `gatemem_grants.json`.

In:   an episode.
Out:  groups of principals that read each other's records; nobody outside a group reads anything in it.
Pure, but for reading the file that lies beside this one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from collab_layer.bench.gatemem import Episode

FILE = Path(__file__).with_name("gatemem_grants.json")
MAPPING = {"office": "G1", "education": "G2"}


@dataclass(frozen=True, slots=True)
class Group:
    """Principals that read each other."""

    name: str
    members: frozenset[str]


def groups(episode: Episode, mapping: str) -> list[Group]:
    """The groups of an episode under `G1` or `G2`, by name."""
    rules = _rules()[mapping]
    return _by_relation(episode, rules) if mapping == "G1" else _circle(episode, rules)


def readable(of: Sequence[Group], principals: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Whose records each principal may read, its own included."""
    return {one: frozenset({one}.union(*(group.members for group in of if one in group.members))) for one in principals}


@cache
def _rules() -> Mapping[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def _by_relation(episode: Episode, rules: Mapping[str, Any]) -> list[Group]:
    found: dict[str, set[str]] = {}
    for relation in episode.relations:
        if "access_scope" in relation.ties or not _among(relation.kind, rules["kinds"]):
            continue
        for field in rules["groups"]:
            if field in relation.ties:
                found.setdefault(f"{field}.{relation.ties[field]}", set()).add(relation.principal)
    return [Group(name, frozenset(members)) for name, members in sorted(found.items()) if len(members) > 1]


def _circle(episode: Episode, rules: Mapping[str, Any]) -> list[Group]:
    circle = {one for one, role in episode.roles.items() if role in rules["roles"]}
    subjects: set[str] = set()
    for relation in episode.relations:
        if _among(relation.kind, rules["subject_kinds"]):
            subjects.add(relation.principal)
        if relation.principal in circle:
            subjects.add(relation.ties.get("for_principal_id", ""))
    students = {one for one in subjects if episode.roles.get(one) == rules["subject_role"]}
    return [Group("circle", frozenset(circle | students))]


def _among(kind: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(kind, pattern) for pattern in patterns)


__all__ = ["FILE", "MAPPING", "Group", "groups", "readable"]
