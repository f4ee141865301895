"""However many records, copies and aliases a principal has, it moves no statement far, and counts once."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.stages.merging import duplicates
from collab_layer.stages.support import pool, support
from collab_layer.stages.synthesize import facets, query_facet
from collab_layer.types.graph import Snippet
from collab_layer.types.scope import Level

from .pieces import piece

NAMES = {1: "Dune", 2: "Hyperion", 3: "Foundation", 4: "Solaris"}
EVE = 900
DELTA = 0.25

_LEVELS = st.sampled_from([Level.FACETS, Level.RECORDS])
_SNIPPETS = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 4), st.floats(0.01, 1), _LEVELS), max_size=25
)  # owner, link, weight, level
_FLOOD = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 4), st.floats(0.01, 1), st.sampled_from(["Buy it", "Do buy it", None])),
    min_size=1,
    max_size=40,
)  # alias, link, weight, words


def _honest(drawn):
    level = {}
    rows = [(owner, link, weight, level.setdefault(owner, kind)) for owner, link, weight, kind in drawn]
    return [
        Snippet(f"n{n}", owner, kind, weight, n, None, (link,)) for n, (owner, link, weight, kind) in enumerate(rows)
    ]


def _flood(drawn, level, party=EVE):
    return [
        Snippet(f"e{n}", EVE + alias, level, weight, n, words, (link,), party=party)
        for n, (alias, link, weight, words) in enumerate(drawn)
    ]


@settings(max_examples=200, deadline=None)
@given(_SNIPPETS, _FLOOD, _LEVELS)
def test_no_flood_of_one_principal_moves_a_confidence_by_more_than_delta(honest, flood, level):
    said = {}
    for snippets in (_honest(honest), _honest(honest) + _flood(flood, level)):
        made = facets(snippets, NAMES, {}, delta=DELTA, max_facets=99, budget_tokens=10_000)
        # A link that joined another one's facet heads none, so compare what each link is backed with.
        held = pool(snippets, min_contributors=3, delta=DELTA)
        for link in NAMES:
            backed = support(held, (one.voice for one in held.by_link.get(link, ())))
            said.setdefault(link, []).append(0.0 if backed is None else backed.confidence)
        assert all(draft.confidence <= 1 for draft in made)
    for before, after in said.values():
        assert abs(before - after) <= DELTA + 1e-9


@settings(max_examples=100, deadline=None)
@given(_SNIPPETS, _FLOOD)
def test_aliases_count_like_the_one_principal_that_they_are(honest, flood):
    several = _honest(honest) + _flood(flood, Level.RECORDS)
    one = [replace(snippet, owner=snippet.voice, party=0) for snippet in several]
    kept = {"delta": DELTA, "max_facets": 99, "budget_tokens": 10_000}
    made = [[(d.key, d.confidence) for d in facets(of, NAMES, {}, **kept)] for of in (several, one)]
    assert made[0] == made[1]
    front, same = (query_facet(of, NAMES) for of in (several, one))
    assert (front and (front.text, front.confidence)) == (same and (same.text, same.confidence))


def test_items_of_two_aliases_that_say_the_same_are_one_voice_when_merged():
    parts = [piece("d1", principal=5, confidence=0.25), piece("d2", principal=6, confidence=0.25)]
    readable = [replace(part, readable=True) for part in parts]
    [apart] = duplicates(readable, delta=DELTA)
    [tied] = duplicates(readable, delta=DELTA, aliases={6: 5})
    assert apart.confidence > DELTA >= tied.confidence
    assert {principal for _, principal, _ in tied.sources} == {5, 6}, "the lineage names both"
    assert sum(weight for _, _, weight in tied.sources) == 1
