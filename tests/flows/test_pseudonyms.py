"""A reader that has only the `facets` level, and one that has nothing: no verb tells of a single owner."""

from __future__ import annotations

import json

import pytest

from collab_layer.config import Settings
from collab_layer.errors import CollabError
from collab_layer.sync import CollabLayer
from collab_layer.testing.clock import FixedClock
from collab_layer.testing.memory import InMemoryBackend
from collab_layer.types.entity import Entity
from collab_layer.types.scope import Sharing

READER = "user:reader"
FRIEND = "user:friend"
THINGS = ("item:foundation", "item:ubik")
OWNERS = [f"user:o{number}" for number in range(6)]
QUERY = "worms of the dune desert"
AUDIENCE = "federation:books"


@pytest.fixture
def opened(database_url):
    """Six owners that hold and say the same; the last also has something of its own. A friend shares records."""
    clock, sharing = FixedClock(), Sharing.private(min_contributors=3)
    options = {"tenant": "acme", "sharing": sharing, "settings": Settings(worker=False), "clock": clock}
    with CollabLayer.open(database_url, **options) as layer:
        layer.clock = clock
        for thing in ("item:dune", "item:solaris"):
            layer.observe(READER, thing, "liked")
        for owner in OWNERS:
            for thing in ("item:dune", *THINGS):
                layer.observe(owner, thing, "liked")
            layer.observe(owner, text=f"The dune desert has worms, says {owner}")
        layer.observe(OWNERS[-1], "item:secret", "liked", text="My divorce hearing with the lawyers is on Tuesday")
        for number in range(8):
            layer.observe(f"user:x{number}", text=f"Filler number {number} about gardens and trains")
        layer.observe(FRIEND, "item:solaris", "liked")
        layer.grant(FRIEND, READER, "records")
        layer.drain()
        yield layer


def share(layer, owners, to=READER):
    grants = [layer.grant(owner, to, "facets") for owner in owners]
    layer.drain()
    return grants


def told(layer):
    """What each verb tells the reader, as JSON, but for who received what: that counts its own questions."""
    view = layer.as_(READER)
    facets = [*view.context(READER).facets, *view.context(READER, QUERY).facets]
    return {
        "context": [one.model_dump(mode="json") for one in view.context(READER).facets],
        "query": [one.model_dump(mode="json") for one in view.context(READER, QUERY).facets],
        "neighbors": [one.model_dump(mode="json") for one in view.neighbors(READER)],
        "neighbors of a query": [one.model_dump(mode="json") for one in view.neighbors(READER, QUERY)],
        "rank": [one.model_dump(mode="json") for one in view.rank(READER, [*THINGS, "item:secret", "item:no"]).items],
        "rank by a query": [one.model_dump(mode="json") for one in view.rank(READER, THINGS, QUERY).items],
        "explain": [view.explain(one.id).model_dump(mode="json", exclude={"received": True}) for one in facets],
    }


def subjects(facets):
    return {one["text"].partition(" (")[0]: one for one in facets}


@pytest.mark.parametrize("verb", ["context", "query", "neighbors", "neighbors of a query", "rank", "rank by a query"])
def test_one_owner_who_joins_is_seen_by_no_verb(opened, verb):
    share(opened, OWNERS[:4])
    before = told(opened)[verb]
    share(opened, OWNERS[5:])
    opened.clock.advance(hours=30)
    assert told(opened)[verb] == before
    assert before


def test_nor_by_explain(opened):
    share(opened, OWNERS[:4])
    before = told(opened)["explain"]
    share(opened, OWNERS[5:])
    opened.clock.advance(hours=30)
    after = told(opened)["explain"]
    assert [one["sources"] for one in after] == [one["sources"] for one in before]
    assert [(one["nodes"], one["more"], one["text"]) for one in after] == [
        (one["nodes"], one["more"], one["text"]) for one in before
    ]


def test_one_owner_who_leaves_takes_all_of_a_crowd_along_or_nothing(opened):
    grants = share(opened, OWNERS[:5])
    before = told(opened)
    opened.revoke(grants[-1].id)
    opened.drain()
    after = told(opened)
    for verb in ("context", "query"):
        left, were = subjects(after[verb]), subjects(before[verb])
        assert all(left[text] == were[text] for text in left), verb
    for verb in ("neighbors", "neighbors of a query", "rank", "rank by a query"):
        assert after[verb] == before[verb], verb


def test_one_owner_who_joins_or_leaves_is_seen_in_no_bundle(opened):
    def bundle():
        return sorted((one.things, one.support) for one in opened.export_bundle(AUDIENCE).facets)

    share(opened, OWNERS[:4], AUDIENCE)
    before = bundle()
    [joined] = share(opened, OWNERS[5:], AUDIENCE)
    opened.clock.advance(hours=30)
    assert bundle() == before != []
    opened.revoke(joined.id)
    opened.clock.advance(hours=30)
    assert bundle() == before


def test_whoever_shares_only_facets_is_no_single_neighbour(opened):
    share(opened, OWNERS)
    view = opened.as_(READER)
    found = [*view.neighbors(READER), *view.neighbors(READER, QUERY), *view.context(READER, QUERY).neighbors]
    assert {str(one.entity) for one in found if one.entity.kind in ("user", "peer")} == {FRIEND}
    assert all(one.score == round(one.score, 1) for one in found)


def test_a_ranking_counts_a_crowd_and_tells_no_number_of_it(opened):
    share(opened, OWNERS)
    items = opened.as_(READER).rank(READER, [*THINGS, "item:secret"]).items
    assert {name for one in items for name in one.features} <= {"own_centroid", "own_top3", "own_recent"}
    assert all(one.score == round(one.score, 1) for one in items)
    assert all(one.evidence == () for one in items)


def test_a_pseudonym_is_the_same_within_one_item_and_another_in_the_next(opened):
    share(opened, OWNERS)
    view = opened.as_(READER)
    [one, other, *_] = [facet for facet in view.context(READER).facets if facet.contributors > 1]
    behind = [{node.principal for node in view.explain(facet.id).sources} for facet in (one, other)]
    assert all(len(some) >= 3 for some in behind)
    assert behind[0].isdisjoint(behind[1]), "who is not behind one of them would be found by it"
    assert {node.principal for node in view.explain(one.id).sources} == behind[0]


def test_how_many_records_somebody_has_behind_a_facet_is_not_told(opened):
    for number in range(4):
        opened.observe(OWNERS[0], text=f"The dune desert has worms, once more, {number}")
    opened.drain()
    share(opened, OWNERS)
    view = opened.as_(READER)
    crowds = [facet for facet in view.context(READER).facets if facet.contributors > 1]
    assert crowds
    for facet in crowds:
        lineage = view.explain(facet.id)
        assert len(lineage.sources) == lineage.nodes == facet.contributors == len(OWNERS)
        assert [node.number for node in lineage.sources] == list(range(1, len(OWNERS) + 1))
        assert {(node.kind, node.id, node.same_as, node.more) for node in lineage.sources} == {
            ("record", "withheld", None, 0)
        }
        assert len(facet.evidence) == min(5, facet.contributors)
        cut = view.explain(facet.id, width=2)
        assert (len(cut.sources), cut.more) == (2, 1), "not how many more"
        whole = {node.principal for node in opened.explain(facet.id).sources}
        assert whole == set(OWNERS), "the operator is told"


def test_what_is_delivered_names_nobody_across_items_either(opened):
    store = InMemoryBackend()
    opened.attach(store, deliver=True)
    share(opened, OWNERS)
    opened.deliver(READER)
    opened.drain()
    written = [one for one in store.derived(READER) if len(one.sources) >= 3]
    behind = [{str(source.principal) for source in one.sources} for one in written]
    assert len(behind) > 1
    assert all(name.startswith("peer:") for some in behind for name in some)
    assert all(some.isdisjoint(other) for at, some in enumerate(behind) for other in behind[:at])


@pytest.mark.parametrize("level", [None, "facets"])
def test_a_private_memory_answers_no_question_through_a_ranking(opened, level):
    if level is not None:
        share(opened, OWNERS)
    victim, bystander = OWNERS[-1], "user:x1"
    asked = [victim, bystander, "user:nobody", "item:secret"]
    for instruction in (None, "divorce hearing with the lawyers", "gardens and trains"):
        items = {str(one.entity): one for one in opened.as_(READER).rank(READER, asked, instruction).items}
        seen = {json.dumps(items[name].model_dump(mode="json", exclude={"entity"})) for name in asked}
        assert len(seen) == 1, f"{instruction}: what is private is as unknown as what is not there"


def test_nor_through_whom_the_reader_says_it_knows(opened):
    view = opened.as_(READER)
    view.observe(READER, text="I read about lawyers and about gardens")
    opened.drain()
    alone = [one.features for one in view.rank(READER, [READER, "item:foundation"]).items]
    view.observe(READER, OWNERS[-1], "follows")
    opened.drain()
    assert [one.features for one in view.rank(READER, [READER, "item:foundation"]).items] == alone


def test_refusals_say_the_same_of_an_owner_whatever_it_shares_below_records(opened):
    def refusals():
        view, out = opened.as_(READER), []
        for ask in (
            lambda: view.context(OWNERS[0]),
            lambda: view.neighbors(OWNERS[0]),
            lambda: view.rank(OWNERS[0], THINGS),
            lambda: view.changes(OWNERS[0], "2020-01-01T00:00:00Z"),
            lambda: view.explain(OWNERS[0]),
            lambda: view.injections(OWNERS[0]),
            lambda: view.grants(OWNERS[0]),
            lambda: view.forget(OWNERS[0]),
        ):
            with pytest.raises(CollabError) as refused:
                ask()
            out.append((refused.value.code, str(refused.value)))
        return out

    before = refusals()
    share(opened, OWNERS)
    assert refusals() == before
    assert not any("facets" in text for _, text in before)


def test_health_counts_for_the_operator_alone(opened):
    mine, operators = opened.as_(READER).health(), opened.health()
    assert operators.counts["interactions"] > 0
    assert (mine.counts, mine.condition) == ({}, operators.condition)
    assert all(part.detail == "" for part in mine.parts)


def test_names_of_owners_stand_in_no_answer(opened):
    share(opened, OWNERS)
    said = json.dumps(told(opened))
    assert not [owner for owner in OWNERS if owner in said]
    assert "divorce" not in said
    assert str(Entity.parse("item:secret")) not in json.dumps({**told(opened), "rank": []})
