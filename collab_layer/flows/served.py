"""How one ranking is to be made, and what served rankings say about neighbours.

load:   whether neighbours are muted; what was served, and what was chosen afterwards;
stages: experiment;
save:   what was decided of owners and of the tenant, in one transaction.

Only rankings in which neighbours may count, those of an open gate and of weights that were set, are
compared and kept: while the gate is shut both arms are the same but for ties.

An owner is muted, and a tenant, when neighbours did harm: the upper bound of the gain is below 0,
over choices from rankings that neighbours had ordered, or against what was held out. What is shown
is chosen more often, so the first understates harm. A mute ends when the lower bound is above 0
over choices made while it lasted, which understates the gain, or when what it rests on is no longer
kept; from then on only what is served afterwards counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from collab_layer.flows.injections import Offer
from collab_layer.flows.tools import Tools
from collab_layer.graph import names, rankings, upkeep
from collab_layer.graph.rankings import TENANT, Served, Verdict
from collab_layer.stages import experiment
from collab_layer.stages.experiment import LEAST, LEAST_TENANT, Difference
from collab_layer.types.entity import Entity
from collab_layer.types.lift import Arm, Compared, Gate
from collab_layer.types.time import DAY

COUNTED = ("open", "set")
"""States of the gate in which neighbours may count for more than a tie."""
MOST = 100
"""Candidates of one ranking that are kept, those in front."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a ranking is made, and the number of its request; None where it is not compared."""

    arm: Arm
    request: int | None = None

    @property
    def alone(self) -> bool:
        """Whether own memory ranks without neighbours."""
        return self.arm != "neighbours"

    def offer(self, version: str, order: Sequence[Entity], other: Mapping[Entity, int] | None) -> Offer | None:
        """What is kept of a ranking: its order, and each candidate's place in the other arm, if known."""
        if self.request is None:
            return None
        places = {one: (at, None if other is None else other[one]) for at, one in enumerate(order[:MOST])}
        return Offer(self.arm, self.request, version, places)


PLAIN = Way("neighbours")


def way(tools: Tools, connection: Connection, tenant: str, owner: tuple[int, Entity], asked: str, used: Gate) -> Way:
    """Draw the arm of an owner's request; the same request of a day is always answered in the same one."""
    if used.state not in COUNTED or not tools.log.ranking_days:
        return PLAIN
    id_, entity = owner
    number = experiment.request(names.salt(connection, tenant), str(entity), tools.now() // DAY, asked)
    if used.muted or rankings.muted(connection, tenant, id_):
        return Way("muted", number)
    return Way("holdout" if experiment.held_out(number, tools.holdout) else "neighbours", number)


def of(tools: Tools, connection: Connection, tenant: str, entity: int | None) -> list[Served]:
    """What was served to an owner, or to all, with the choices that followed."""
    since = tools.log.rankings_since(tools.now())
    return rankings.served(connection, tenant, entity, since, round(tools.choice_days * DAY))


def compared(served: Sequence[Served]) -> Compared | None:
    """Requests served with neighbours against those held out; None while one of the two has no choice."""
    arms = {arm: [one for one in served if one.arm == arm] for arm in ("neighbours", "holdout")}
    hits, cases = _hits(arms["neighbours"])
    base_hits, base_cases = _hits(arms["holdout"])
    if not cases or not base_cases:
        return None
    found = experiment.difference(hits, cases, base_hits, base_cases)
    served_so = {"alone_served": len(arms["holdout"]), "together_served": len(arms["neighbours"])}
    return _compared(found, base_hits / base_cases, hits / cases, base_cases, cases).model_copy(update=served_so)


def both_orders(served: Sequence[Served]) -> Compared | None:
    """Choices from rankings that neighbours ordered, each placed in both orders; None without one."""
    counts = _pairs(served, "neighbours")
    if not (cases := sum(counts)):
        return None
    both, won, lost, _ = counts
    return _compared(experiment.paired(*counts), (both + lost) / cases, (both + won) / cases, cases, cases)


def look_back(tools: Tools, tenant: str) -> None:
    """Once an hour, drop what was served too long ago and decide anew for whom neighbours are muted. Blocking."""
    if tools.log.prune(tenant, tools.now()):
        judge(tools, tenant)


def judge(tools: Tools, tenant: str) -> int:
    """Decide anew for whom neighbours are muted; how many owners are. Blocking.

    Nothing is decided if something was erased meanwhile: the next turn does.
    """
    tools.log.flush()
    with tools.store.database.read() as connection:
        generation, _ = upkeep.fence(connection, tenant)
        before = rankings.verdicts_of(connection, tenant)
        everything = of(tools, connection, tenant, None)
    by_owner: dict[int, list[Served]] = {owner: [] for owner in before.keys() - {TENANT}}
    for one in everything:
        by_owner.setdefault(one.entity, []).append(one)
    after = {owner: _decided(tools, mine, before.get(owner), LEAST) for owner, mine in by_owner.items()}
    muted = {owner for owner, one in after.items() if one.muted}
    # What one owner had of it is decided already: the others are not to pay for that.
    rest = [one for one in everything if one.entity not in muted]
    after[TENANT] = _decided(tools, rest, before.get(TENANT), LEAST_TENANT)
    changed = {owner: one for owner, one in after.items() if one.at and one != before.get(owner)}
    if changed:
        with tools.store.database.write() as connection:
            if names.lock(connection, tenant) == generation:
                rankings.decide(connection, tenant, changed)
    return len(muted)


def _decided(tools: Tools, served: Sequence[Served], old: Verdict | None, least: int) -> Verdict:
    """The verdict from now on; one that does not turn stays as it is."""
    now, was = tools.now(), old or Verdict(False, 0)
    over = was.muted and was.at <= tools.log.rankings_since(now)
    turns = over or _turns([one for one in served if one.at >= was.at], was, least)
    return Verdict(not was.muted, now) if turns else was


def _turns(served: Sequence[Served], old: Verdict, least: int) -> bool:
    """Whether what was served since the last decision turns it."""
    if old.muted:
        counts = _pairs(served, "muted")
        return sum(counts) >= least and experiment.paired(*counts).low > 0
    counts = _pairs(served, "neighbours")
    if sum(counts) >= least and experiment.paired(*counts).high < 0:
        return True
    drawn = compared(served)
    return drawn is not None and min(drawn.alone_cases, drawn.together_cases) >= least and drawn.high < 0


def _hits(served: Sequence[Served]) -> tuple[int, int]:
    """Choices in first place, and choices."""
    places = [one.place for one in served if one.place is not None]
    return sum(place == 0 for place in places), len(places)


def _pairs(served: Sequence[Served], arm: Arm) -> tuple[int, int, int, int]:
    """Choices from rankings of an arm that hit in both orders, with neighbours only, alone only, in none."""
    placed = [
        (one.place, one.other) if arm == "neighbours" else (one.other, one.place)
        for one in served
        if one.arm == arm and one.place is not None and one.other is not None
    ]
    count = Counter((together == 0, alone == 0) for together, alone in placed)
    return count[True, True], count[True, False], count[False, True], count[False, False]


def _compared(found: Difference, alone: float, together: float, alone_cases: int, together_cases: int) -> Compared:
    return Compared(
        alone=alone,
        together=together,
        alone_cases=alone_cases,
        together_cases=together_cases,
        change=found.value,
        low=found.low,
        high=found.high,
    )


__all__ = ["PLAIN", "Way", "both_orders", "compared", "judge", "look_back", "of", "way"]
