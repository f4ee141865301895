"""The holders of many targets, looked at together, are those that looking at one after another finds."""

from typing import cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from collab_layer.governance.grants import Audience
from collab_layer.graph.adjacency import PACKED, Adjacency, Around, Kind, unpack
from collab_layer.graph.index import TenantIndex
from collab_layer.graph.reader import Reading, _union, holders
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER

ENTITIES = 30
LEVELS = st.sampled_from(list(Level))
KINDS = (Kind.HELD_BY, Kind.MENTIONED_BY)


def _reading(owners, unmet, default, named, reader, aliases, minimum):
    index = TenantIndex("acme", "test", 8)
    index._is_owner.extend(np.array(owners))
    index._since.extend(np.where(unmet, FOREVER, 0))
    index.aliases = aliases
    nowhere = cast(Connection, None)
    return Reading(nowhere, "acme", index, Adjacency(), Audience(reader, default, named), 0, minimum=minimum)


readings = st.builds(
    _reading,
    owners=st.lists(st.booleans(), min_size=ENTITIES, max_size=ENTITIES),
    unmet=st.lists(st.booleans(), min_size=ENTITIES, max_size=ENTITIES),
    default=LEVELS,
    named=st.dictionaries(st.integers(0, ENTITIES - 1), LEVELS, max_size=8),
    reader=st.integers(-1, ENTITIES - 1),
    aliases=st.one_of(st.just({}), st.dictionaries(st.integers(0, ENTITIES - 1), st.integers(0, 3), max_size=9)),
    minimum=st.integers(1, 4),
)


@st.composite
def around(draw):
    ends = draw(st.lists(st.integers(0, ENTITIES - 1), unique=True, max_size=ENTITIES))
    kinds = draw(st.lists(st.sampled_from([*KINDS, Kind.HAS_MEMBER]), min_size=len(ends), max_size=len(ends)))
    rows = [(end, kind, 1.0 + end / 7, 1, -at) for at, (end, kind) in enumerate(zip(ends, kinds, strict=True))]
    return Around(np.array(rows, PACKED))


def _one(reading, target, focus, cap):
    ends = target.ends(*KINDS)
    others = ends != focus
    levels = reading.level_of[ends] * others
    counted = reading.counted_levels(levels, ends) + int(not others.all())
    return unpack(target.rows(*KINDS)[np.flatnonzero(levels)[:cap]]), max(counted, 1)


@settings(max_examples=300)
@given(readings, st.lists(around(), max_size=6), st.integers(-1, ENTITIES - 1), st.integers(1, 12))
def test_together_and_one_by_one_are_the_same(reading, targets, focus, cap):
    found = holders(reading, targets, focus, cap)
    expected = [_one(reading, target, focus, cap) for target in targets]
    assert found.target.tolist() == [at for at, (edges, _) in enumerate(expected) for _ in range(len(edges))]
    for name in ("ids", "weight", "last"):
        assert getattr(found, name).tolist() == [one for edges, _ in expected for one in getattr(edges, name).tolist()]
    assert found.counted.tolist() == [counted for _, counted in expected]


@given(readings)
def test_owners_that_count_are_those_that_were_met_and_may_be_seen(reading):
    met = reading.index.owners()[reading.index.met(reading.index.owners())]
    if reading.audience.default > Level.NONE:
        assert reading.owners_visible() == (reading.counted(met) or 1)


@given(st.lists(st.lists(st.integers(0, 50), max_size=20), min_size=1, max_size=3))
def test_a_union_is_what_numpy_calls_unique(parts):
    arrays = [np.array(part, np.int64) for part in parts]
    assert np.array_equal(_union(*arrays), np.unique(np.concatenate(arrays)))
