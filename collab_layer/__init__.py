"""A graph between owners, above the memory stores they already use.

In:   nothing; importing this package opens nothing and reads no environment.
Out:  the public names below, each imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collab_layer import errors
    from collab_layer.layer import AsyncCollabLayer
    from collab_layer.plugins.hookspecs import hookimpl
    from collab_layer.sync import CollabLayer
    from collab_layer.types.alias import Alias
    from collab_layer.types.answer import Answer
    from collab_layer.types.bundle import Bundle, Imported, Issued, Revocations
    from collab_layer.types.changed import Changed
    from collab_layer.types.entity import Entity, MemoryRecord, MemoryRef
    from collab_layer.types.erasure import ErasureReceipt
    from collab_layer.types.facet import CollabMemory, Evidence, Facet, Neighbor
    from collab_layer.types.health import Health
    from collab_layer.types.interaction import Interaction
    from collab_layer.types.lift import Gate, Lift, Rebuilt
    from collab_layer.types.lineage import Lineage
    from collab_layer.types.notice import Notice
    from collab_layer.types.ranking import Ranking
    from collab_layer.types.review import Blocked
    from collab_layer.types.rules import RuleDiff, RuleSet
    from collab_layer.types.scope import Grant, Policy, Sharing
    from collab_layer.types.upkeep import Consolidation

_HOME = {
    "Alias": "collab_layer.types.alias",
    "Answer": "collab_layer.types.answer",
    "Bundle": "collab_layer.types.bundle",
    "Imported": "collab_layer.types.bundle",
    "Issued": "collab_layer.types.bundle",
    "Revocations": "collab_layer.types.bundle",
    "AsyncCollabLayer": "collab_layer.layer",
    "Blocked": "collab_layer.types.review",
    "Changed": "collab_layer.types.changed",
    "CollabLayer": "collab_layer.sync",
    "CollabMemory": "collab_layer.types.facet",
    "Consolidation": "collab_layer.types.upkeep",
    "Entity": "collab_layer.types.entity",
    "ErasureReceipt": "collab_layer.types.erasure",
    "Evidence": "collab_layer.types.facet",
    "Facet": "collab_layer.types.facet",
    "Gate": "collab_layer.types.lift",
    "Grant": "collab_layer.types.scope",
    "Health": "collab_layer.types.health",
    "Interaction": "collab_layer.types.interaction",
    "Lift": "collab_layer.types.lift",
    "Lineage": "collab_layer.types.lineage",
    "MemoryRecord": "collab_layer.types.entity",
    "MemoryRef": "collab_layer.types.entity",
    "Neighbor": "collab_layer.types.facet",
    "Notice": "collab_layer.types.notice",
    "Policy": "collab_layer.types.scope",
    "Ranking": "collab_layer.types.ranking",
    "Rebuilt": "collab_layer.types.lift",
    "RuleDiff": "collab_layer.types.rules",
    "RuleSet": "collab_layer.types.rules",
    "Sharing": "collab_layer.types.scope",
    "hookimpl": "collab_layer.plugins.hookspecs",
}
"""Where each public name lives."""

__all__ = [
    "Bundle",
    "Imported",
    "Issued",
    "Revocations",
    "Alias",
    "Answer",
    "AsyncCollabLayer",
    "Blocked",
    "Changed",
    "CollabLayer",
    "CollabMemory",
    "Consolidation",
    "Entity",
    "ErasureReceipt",
    "Evidence",
    "Facet",
    "Gate",
    "Grant",
    "Health",
    "Interaction",
    "Lift",
    "Lineage",
    "MemoryRecord",
    "MemoryRef",
    "Neighbor",
    "Notice",
    "Policy",
    "Ranking",
    "Rebuilt",
    "RuleDiff",
    "RuleSet",
    "Sharing",
    "errors",
    "hookimpl",
]


def __getattr__(name: str) -> Any:
    if name == "errors":
        value = import_module("collab_layer.errors")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
