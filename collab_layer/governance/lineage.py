"""The rules of a lineage: it has no cycles, and nothing is trusted more than what it rests on.

In:   which item rests on which items, and how far each is trusted by itself.
Out:  the trust of each; or a refusal where an item would rest on itself.
Pure: no clock, no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter

from collab_layer.errors import LineageCycleError
from collab_layer.types.lineage import Maker

_RULES = re.compile(r"rules ([0-9a-f]+)")
_MODEL = re.compile(r"(.+), prompt (\S+)")


def trust_of(rests_on: Mapping[str, Collection[str]], own: Mapping[str, float]) -> dict[str, float]:
    """The trust of every item: the minimum of its own and of all that it rests on, through all generations.

    Args:
        rests_on: Item to the items it rests on; those that rest on nothing may be left out.
        own: How far an item is trusted by itself, in [0, 1]; 1 where it is missing.

    Raises:
        LineageCycleError: An item rests on itself, directly or through others.
    """
    trust: dict[str, float] = {}
    for item in _sources_first(rests_on):
        mine = min(1.0, max(0.0, own.get(item, 1.0)))
        trust[item] = min([mine, *(trust[source] for source in rests_on.get(item, ()))])
    return trust


def maker(made_by: str) -> Maker | None:
    """The parts of the line that says what worded an item; None where it says nothing of the kind."""
    if match := _RULES.fullmatch(made_by):
        return Maker(rules=match[1])
    if match := _MODEL.fullmatch(made_by):
        return Maker(model=match[1], prompt=match[2])
    return None


def _sources_first(rests_on: Mapping[str, Collection[str]]) -> list[str]:
    try:
        return list(TopologicalSorter(rests_on).static_order())
    except CycleError as error:
        raise LineageCycleError(str(error.args[1][0])) from error


__all__ = ["maker", "trust_of"]
