"""How good a context is for a ticket, by what was done on it and by independent labels.

In:   tickets; records, and the items of a context.
Out:  `FIGURES` of one context.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from collab_layer.bench.stores import Item
from collab_layer.bench.tickets_data import Ticket
from collab_layer.bench.tickets_split import Record, idf_of

FIGURES = ("plan_ap", "hit", "recall", "scenario_recall", "waste", "tokens")
ALIKE_DID, ALIKE_SCENARIO = 0.5, 0.2
"""idf-Jaccard from which two tickets are alike, by what was done and by their independent labels."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Which tickets are alike."""

    tickets: Sequence[Ticket]
    idf: Mapping[str, float]
    scenario_idf: Mapping[str, float]

    def did(self, at: int, record: Record) -> bool:
        """Whether a record says of a ticket of the same group that much the same was done."""
        case, other = self.tickets[at], self.tickets[record.ticket]
        return case.group == other.group and _jaccard(case.did, record.did, self.idf) >= ALIKE_DID

    def scenario(self, at: int, record: Record) -> bool:
        """Whether the independent labels of both tickets meet."""
        other = self.tickets[record.ticket].scenario
        return _jaccard(self.tickets[at].scenario, other, self.scenario_idf) >= ALIKE_SCENARIO


def labels_of(tickets: Sequence[Ticket]) -> Labels:
    """What tells which tickets are alike, with weights over the whole set."""
    counts: dict[str, int] = {}
    for ticket in tickets:
        for word in ticket.scenario:
            counts[word] = counts.get(word, 0) + 1
    return Labels(tickets, idf_of(tickets), {word: float(np.log1p(len(tickets) / n)) for word, n in counts.items()})


def figures(
    labels: Labels, case: int, records: Sequence[Record], items: Sequence[Item], told: Mapping[str, Record]
) -> list[float]:
    """`FIGURES` of one context; NaN where a ticket has no alike one among the records.

    A record counts once, at its first place. `plan_ap` is the average precision of the decisions
    named by the records, each voting 1 / log2(1 + place), against what was done on the case.
    """
    votes: dict[str, float] = {}
    seen: dict[str, Record] = {}
    wasted = 0
    for item in items:
        fresh = {id_: told[id_] for id_ in item.sources if id_ in told and id_ not in seen}
        seen.update(fresh)
        wasted += 0 if any(labels.did(case, record) for record in fresh.values()) else item.tokens
    for place, record in enumerate(seen.values(), start=1):
        for said in record.did:
            votes[said] = votes.get(said, 0.0) + 1 / log2(1 + place)
    alike = sum(labels.did(case, record) for record in records)
    same = sum(labels.scenario(case, record) for record in records)
    got = sum(labels.did(case, record) for record in seen.values())
    got_same = sum(labels.scenario(case, record) for record in seen.values())
    tokens = sum(item.tokens for item in items)
    return [
        average_precision(votes, labels.tickets[case].did),
        float(got > 0) if alike else np.nan,
        got / alike if alike else np.nan,
        got_same / same if same else np.nan,
        wasted / tokens if tokens else np.nan,
        float(tokens),
    ]


def average_precision(votes: Mapping[str, float], right: frozenset[str]) -> float:
    """Mean precision at each right one, over all that are right, in [0, 1]; ties by name."""
    total, hits = 0.0, 0
    for place, said in enumerate(sorted(votes, key=lambda one: (-votes[one], one)), start=1):
        if said in right:
            hits += 1
            total += hits / place
    return total / len(right)


def _jaccard(one: frozenset[str], other: frozenset[str], weight: Mapping[str, float]) -> float:
    both = sum(weight[said] for said in one | other)
    return sum(weight[said] for said in one & other) / both if both else 0.0


__all__ = ["FIGURES", "Labels", "average_precision", "figures", "labels_of"]
