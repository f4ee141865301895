"""A tenant's ranking weights: kept under one name of `settings`, with the state of the gate."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import numpy as np
from sqlalchemy import Connection, select

from collab_layer.errors import InputError
from collab_layer.flows.tools import Tools
from collab_layer.graph import rankings
from collab_layer.graph.engine import upsert
from collab_layer.graph.tables import settings
from collab_layer.stages.few import Weights
from collab_layer.stages.fit import MIN_CASES, Fitted
from collab_layer.stages.rank import DEFAULT_WEIGHTS, held_back
from collab_layer.types.lift import Gate

NAME = "rank_weights"


def load(connection: Connection, tenant: str) -> Gate:
    """The weights in use, shut where none were kept, and whether the tenant is muted."""
    text = connection.execute(
        select(settings.c.value).where(settings.c.tenant == tenant, settings.c.name == NAME)
    ).scalar()
    if text is None:
        return untested()
    kept = json.loads(text)
    set_before = None if "state" in kept else Gate(state="set", weights=kept, version=version_of(kept))
    found = set_before or Gate.model_validate(kept)
    return found.model_copy(update={"muted": bool(rankings.muted(connection, tenant, rankings.TENANT))})


def untested(cases: int = 0) -> Gate:
    """Shut, with the defaults of the own features: nothing has shown yet that neighbours do no harm."""
    weights = held_back(DEFAULT_WEIGHTS)
    return Gate(state="untested", weights=weights, version=version_of(weights), cases=cases)


def of(much: Fitted, few: Fitted) -> Gate:
    """What two fits say, on whole histories and on cut ones; too few cases say nothing."""
    if much.cases < MIN_CASES:
        return untested(much.cases)
    weights = _counting(much)
    short = _counting(few) if few.cases >= MIN_CASES else None
    return Gate(
        state="open" if much.open or few.open else "shut",
        weights=weights,
        few=short,
        version=version_of(weights, short),
        gain=much.gain,
        low=much.low,
        few_gain=few.gain,
        few_low=few.low,
        cases=much.cases,
    )


def for_all(gate: Gate) -> Weights:
    """The weights of a gate, for owners of any number of things."""
    return Weights(gate.weights, gate.few)


def _counting(fitted: Fitted) -> dict[str, float]:
    return fitted.weights if fitted.open else held_back(fitted.weights)


def chosen(weights: Mapping[str, float] | None) -> Gate:
    """What the operator set; None is the defaults with neighbours.

    Raises:
        InputError: An unknown feature, or a weight that is negative or not finite.
    """
    weights = DEFAULT_WEIGHTS if weights is None else weights
    unknown = sorted(set(weights) - set(DEFAULT_WEIGHTS))
    if unknown:
        raise InputError(f"unknown ranking features: {', '.join(unknown)}")
    if any(not np.isfinite(value) or value < 0 for value in weights.values()):
        raise InputError("ranking weights must be finite and not negative")
    return Gate(state="set", weights=dict(weights), version=version_of(weights))


def keep(tools: Tools, tenant: str, gate: Gate) -> None:
    """Use these weights in every later ranking of the tenant, in every process."""
    with tools.store.database.write() as connection:
        row = {"tenant": tenant, "name": NAME, "value": gate.model_dump_json()}
        upsert(connection, settings, [row], update=("value",))


def version_of(weights: Mapping[str, float], few: Mapping[str, float] | None = None) -> str:
    """Eight hexadecimal digits that stand for these weights."""
    said = [dict(sorted(each.items())) for each in (weights, few) if each is not None]
    return hashlib.sha256("".join(map(json.dumps, said)).encode()).hexdigest()[:8]


__all__ = ["chosen", "for_all", "keep", "load", "of", "untested"]
