"""The holders of many targets, looked at together, are those that looking at one after another finds."""

from typing import cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from collab_layer.governance.grants import Audience
from collab_layer.graph.adjacency import PACKED, Adjacency, Around, Kind
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


def _newest(reading, target, focus, cap):
    ends = target.ends(*KINDS)
    return ends[np.flatnonzero(reading.level_of[ends] * (ends != focus))[:cap]].tolist()


def _counted(reading, target, focus):
    ends = target.ends(*KINDS)
    others = ends != focus
    return max(reading.counted_levels(reading.level_of[ends] * others, ends) + int(not others.all()), 1)


@settings(max_examples=300)
@given(
    readings,
    st.lists(around(), max_size=6),
    st.integers(-1, ENTITIES - 1),
    st.integers(1, 12),
    st.sets(st.integers(0, ENTITIES - 1), max_size=3),
)
def test_together_and_one_by_one_are_the_same(reading, targets, focus, cap, also):
    also -= {focus}
    found = holders(reading, targets, focus, cap, np.array(sorted(also), np.int64))
    pool = also.union(*(_newest(reading, target, focus, cap) for target in targets))
    expected = [
        (at, row["dst"], row["weight"], row["last"])
        for at, target in enumerate(targets)
        for row in target.rows(*KINDS)
        if row["dst"] in pool
    ]
    assert list(zip(found.target, found.ids, found.weight, found.last, strict=True)) == expected
    assert found.counted.tolist() == [_counted(reading, target, focus) for target in targets]


def test_who_came_early_to_one_thing_and_late_to_another_holds_both():
    early, late = ([(end, Kind.HELD_BY, 1.0, 1, -at) for at, end in enumerate(ends)] for ends in ([7, 8, 9], [9, 8]))
    reading = _reading([True] * ENTITIES, [False] * ENTITIES, Level.RECORDS, {}, 1, {}, 1)
    found = holders(reading, [Around(np.array(rows, PACKED)) for rows in (early, late)], 1, 1, np.zeros(0, np.int64))
    assert list(zip(found.target, found.ids, strict=True)) == [(0, 7), (0, 9), (1, 9)]
    assert found.counted.tolist() == [3, 2]


@given(readings)
def test_owners_that_count_are_those_that_were_met_and_may_be_seen(reading):
    met = reading.index.owners()[reading.index.met(reading.index.owners())]
    if reading.audience.default > Level.NONE:
        assert reading.owners_visible() == (reading.counted(met) or 1)


@given(readings)
def test_those_that_share_only_facets_are_counted(reading):
    assert reading.distilled() == np.count_nonzero(reading.level_of == Level.FACETS)


@given(st.lists(st.lists(st.integers(0, 50), max_size=20), min_size=1, max_size=3))
def test_a_union_is_what_numpy_calls_unique(parts):
    arrays = [np.array(part, np.int64) for part in parts]
    assert np.array_equal(_union(*arrays), np.unique(np.concatenate(arrays)))
