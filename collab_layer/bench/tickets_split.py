"""Who solved which ticket, and who meets the next one.

In:   tickets, a layout, a seed and a fold.
Out:  a `Deal`: the records of every owner, and the cases with who asks.
Pure: chance comes from the seed. A case is in no record.

Layouts: `rnd` two owners, dealt at random; `spec` two owners, each with half of the kinds of
decisions; `many` twelve owners, seven in ten of their records of one kind; `noisy` as `many`,
and four owners recorded what was done on another ticket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np
from numpy.typing import NDArray

from collab_layer.bench.tickets_data import Ticket
from collab_layer.types.graph import Floats

LAYOUTS = ("rnd", "spec", "many", "noisy")
FOLDS = 5
KINDS = 4
"""Clusters of decisions in each group."""
OWNERS: Mapping[str, int] = {"rnd": 2, "spec": 2, "many": 12, "noisy": 12}
PURE = 0.7
WRONG = 4
"""Owners of `noisy` whose records are about the wrong ticket."""
_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Record:
    """What an owner noted of a ticket; `did` is what it says was done."""

    owner: str
    ticket: int
    did: frozenset[str]


@dataclass(frozen=True, slots=True)
class Deal:
    """One split: records, and (ticket, who asks) pairs."""

    records: Sequence[Record]
    cases: Sequence[tuple[int, str]]


def deal(tickets: Sequence[Ticket], layout: str, seed: int, fold: int) -> Deal:
    """The split of one seed and fold; the folds of a seed share no case and cover all tickets."""
    rng = np.random.default_rng([seed, LAYOUTS.index(layout)])
    order = rng.permutation(len(tickets))
    cases = sorted(order[fold::FOLDS].tolist())
    held = [at for at in range(len(tickets)) if at not in set(cases)]
    kinds = _kinds(tickets, rng)
    owners = [_owner(rng, layout, int(kinds[at])) for at in held]
    wrong = {f"agent:{n}" for n in range(WRONG)} if layout == "noisy" else set[str]()
    records = [
        Record(owner, at, _other(rng, tickets, held, at) if owner in wrong else tickets[at].did)
        for owner, at in zip(owners, held, strict=True)
    ]
    asks = [f"agent:{int(n)}" for n in rng.integers(0, OWNERS[layout], len(cases))]
    return Deal(records, list(zip(cases, asks, strict=True)))


def idf_of(tickets: Sequence[Ticket]) -> dict[str, float]:
    """Weight of each decision: log(1 + N / n)."""
    counts: dict[str, int] = {}
    for ticket in tickets:
        for said in ticket.did:
            counts[said] = counts.get(said, 0) + 1
    return {said: log1p(len(tickets) / count) for said, count in counts.items()}


def _owner(rng: np.random.Generator, layout: str, kind: int) -> str:
    count = OWNERS[layout]
    if layout == "rnd":
        return f"agent:{int(rng.integers(count))}"
    if layout == "spec":
        return f"agent:{kind % count}"
    pure = rng.random() < PURE
    mine = kind + KINDS * int(rng.integers(count // KINDS))
    return f"agent:{mine if pure else int(rng.integers(count))}"


def _other(rng: np.random.Generator, tickets: Sequence[Ticket], held: Sequence[int], at: int) -> frozenset[str]:
    same = [one for one in held if one != at and tickets[one].group == tickets[at].group]
    return tickets[same[int(rng.integers(len(same)))]].did if same else tickets[at].did


def _kinds(tickets: Sequence[Ticket], rng: np.random.Generator) -> NDArray[np.int64]:
    """A cluster number for each ticket, `KINDS` in each group: spherical k-means of idf-weighted decisions."""
    idf = idf_of(tickets)
    place = {said: at for at, said in enumerate(sorted(idf))}
    out = np.zeros(len(tickets), np.int64)
    for group in sorted({ticket.group for ticket in tickets}):
        rows = [at for at, ticket in enumerate(tickets) if ticket.group == group]
        table = np.zeros((len(rows), len(place)))
        for row, at in enumerate(rows):
            for said in tickets[at].did:
                table[row, place[said]] = idf[said]
        out[rows] = _clusters(table / np.linalg.norm(table, axis=1, keepdims=True), rng)
    return out


def _clusters(rows: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    centres = rows[rng.choice(len(rows), min(KINDS, len(rows)), replace=False)]
    found = np.zeros(len(rows), np.int64)
    for _ in range(_ROUNDS):
        found = (rows @ centres.T).argmax(axis=1)
        means = np.stack([
            rows[found == one].mean(axis=0) if (found == one).any() else centres[one] for one in range(len(centres))
        ])  # fmt: skip
        centres = means / np.linalg.norm(means, axis=1, keepdims=True)
    return found


__all__ = ["FOLDS", "LAYOUTS", "OWNERS", "Deal", "Record", "deal", "idf_of"]
