"""Nightly upkeep through the public door, on both databases."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from collab_layer.config import Settings
from collab_layer.errors import NotPermittedError, UnknownIdError
from collab_layer.graph import derived as stored
from collab_layer.graph.names import bump
from collab_layer.graph.tables import audit, deliveries, derived, lineage, relations
from collab_layer.sync import CollabLayer
from collab_layer.testing.memory import InMemoryBackend
from collab_layer.types.facet import FacetKind
from collab_layer.types.interaction import Interaction
from collab_layer.types.upkeep import Consolidation

from .conftest import tickets
from .tidied import SAID, around, database, rows, say, told


def _items(layer, *columns):
    with database(layer).read() as connection:
        return [tuple(row) for row in connection.execute(select(*columns))]


# -- merging -----------------------------------------------------------------------------------


def test_what_several_say_is_told_once_on_the_word_of_all(layer):
    around(layer)
    ids = say(layer, "user:a", "user:c", "user:a")
    parts = told(layer)
    assert {part.contributors for part in parts} == {1}
    report = layer.consolidate()
    (update,) = told(layer)
    assert (report.merged, report.parts) == (1, 3)
    assert update.contributors == 2
    alone = max(part.confidence for part in parts)
    assert alone < update.confidence <= 2 * alone <= 0.5
    lineage_ = layer.explain(update.id)
    assert {source.id for source in lineage_.sources if source.id.startswith("i")} == set(ids)
    assert {source.principal for source in lineage_.sources} == {"user:a", "user:c"}
    assert {item.source for item in update.evidence} == set(ids)


def test_saying_it_again_and_again_makes_one_principal_no_surer(layer):
    around(layer)
    say(layer, *["user:a"] * 5)
    before = max(part.confidence for part in told(layer))
    layer.consolidate()
    (update,) = told(layer)
    assert update.confidence <= before + 1e-9 <= 0.25 + 1e-9


def test_the_parts_stay_as_history_and_say_who_stands_for_them(layer):
    around(layer)
    say(layer, "user:a", "user:c")
    layer.consolidate()
    (update,) = told(layer)
    parts = [source.id for source in layer.explain(update.id).sources if source.id.startswith("d")]
    assert len(parts) == 2
    for part in parts:
        history = layer.explain(part)
        assert history.superseded_by == update.id
        assert "Dune" in history.text
    assert layer.explain(update.id).superseded_by is None


def test_a_second_run_changes_nothing(layer):
    around(layer)
    say(layer, "user:a", "user:c", "user:a")
    assert layer.consolidate().changes
    before = rows(layer, "derived", "lineage", "relations", "edges", "entities", "adjacency", "deliveries")
    again = layer.consolidate()
    assert again.changes == {}
    assert rows(layer, *before) == before


def test_a_dry_run_changes_nothing_and_tells_what_a_real_one_does(layer):
    around(layer)
    say(layer, "user:a", "user:c", "user:a")
    layer.observe([Interaction(actor="user:a", target="item:9", verb=verb) for verb in ("loved", "hated")])
    layer.drain()
    before = rows(layer)
    dry = layer.consolidate(dry_run=True)
    assert rows(layer) == before
    real = layer.consolidate()
    assert dry.changes == real.changes != {}
    assert (dry.owners, dry.items, dry.nodes) == (real.owners, real.items, real.nodes)
    assert (dry.dry_run, dry.pages, real.dry_run) == (True, 0, False)
    assert real.pages > 0


def test_opposite_words_are_not_one_statement_and_contradict_nothing(layer):
    around(layer)
    say(layer, "user:a", text="Dune is good, I love the desert in it")
    say(layer, "user:c", text="Dune is not good, I hate the desert in it")
    report = layer.consolidate()
    assert (report.merged, report.superseded) == (0, 0)
    assert len(told(layer)) == 2


def test_russian_merges_supersedes_and_relates_as_english_does(layer):
    around(layer)
    say(layer, "user:a", text="Дюна лучшая книга о пустыне")
    say(layer, "user:c", text="дюна — лучшая книга о пустыне!")
    say(layer, "user:c", text="Дюна не лучшая книга о пустыне")
    assert layer.consolidate().merged == 1
    both = told(layer, word="юна")
    assert sorted(update.contributors for update in both) == [1, 2]
    merged = next(update for update in both if update.contributors == 2)
    assert set(layer.explain(merged.id).related) & {update.id for update in both}


def test_the_next_night_takes_in_what_came_late(layer, clock):
    around(layer)
    say(layer, "user:a", "user:c")
    layer.consolidate()
    (first,) = told(layer)
    clock.advance(days=1)
    say(layer, "user:a", text=f"{SAID}!", at=clock() - timedelta(days=9))
    report = layer.consolidate()
    assert (report.merged, report.parts, report.split) == (1, 3, 0)
    assert layer.consolidate().changes == {}
    (second,) = told(layer)
    assert second.id != first.id
    assert layer.explain(first.id).superseded_by == second.id


def test_what_is_said_again_with_the_same_id_prolongs_the_merged_item(layer, clock):
    around(layer)
    for who in ("user:a", "user:c"):
        layer.observe(who, "item:7", verb="loved")
    layer.drain()
    clock.advance(days=20)
    layer.observe("user:a", "item:7", verb="loved")
    layer.drain()
    clock.advance(days=20)
    assert [update.text for update in told(layer, word="loved 7")] == ["user:a loved 7"]


def test_a_cached_answer_does_not_outlive_a_night(layer):
    around(layer)
    say(layer, "user:a", "user:c")
    for _ in range(2):
        before = layer.context("user:b", budget_tokens=8000)
    assert before.cached
    layer.consolidate()
    after = layer.context("user:b", budget_tokens=8000)
    assert not after.cached
    assert {facet.id for facet in after.facets} != {facet.id for facet in before.facets}


def test_nothing_of_another_tenant_is_touched(layer):
    other = layer.for_tenant("other")
    for one in (layer, other):
        around(one)
        say(one, "user:a", "user:c")
    before = len(told(other)), other.consolidate(dry_run=True).changes
    assert layer.consolidate().merged == 1
    assert (len(told(other)), other.consolidate(dry_run=True).changes) == before


def test_a_tenant_that_nothing_is_known_of_has_nothing_to_tidy(layer):
    nobody = layer.for_tenant("nobody")
    assert nobody.consolidate() == Consolidation()
    assert nobody.consolidate(dry_run=True).changes == {}


# -- permissions ---------------------------------------------------------------------------------


def test_a_merged_item_is_read_by_nobody_who_lacks_one_grant_and_the_rest_is_told_at_once(layer):
    grants = around(layer)
    say(layer, "user:a", "user:c")
    layer.consolidate()
    reader = layer.as_("user:b")
    (merged,) = told(reader)
    assert reader.explain(merged.id).text == merged.text
    layer.revoke(grants["user:c", "user:b"].id)
    for call in (reader.explain, reader.derived):
        with pytest.raises(UnknownIdError):
            call(merged.id)
    (left,) = told(reader)
    assert [source.principal for source in reader.explain(left.id).sources] == ["user:a"]
    assert layer.consolidate().merged == 0
    assert [update.id for update in told(reader)] == [left.id]


def test_after_a_grant_that_comes_back_what_is_said_again_is_merged_again(layer):
    grants = around(layer)
    say(layer, "user:a", "user:c")
    layer.consolidate()
    (merged,) = told(layer)
    layer.revoke(grants["user:c", "user:b"].id)
    layer.consolidate()
    layer.grant("user:c", "user:b", "records")
    assert layer.consolidate().merged == 0, "its words were dropped"
    say(layer, "user:c")
    assert layer.consolidate().merged == 1
    assert [update.contributors for update in told(layer)] == [merged.contributors]


def test_a_grant_that_runs_out_hides_the_merged_item_at_once_and_shows_the_rest_when_work_is_done(layer, clock):
    around(layer, tellers=("user:a",))
    for n in range(4):
        layer.observe("user:c", f"item:{n}", verb="held")
    layer.grant("user:c", "user:b", "records", until=clock() + timedelta(hours=1))
    layer.drain()
    say(layer, "user:a", "user:c")
    layer.consolidate()
    assert told(layer)[0].contributors == 2
    clock.advance(hours=2)
    assert told(layer) == []
    layer.drain()
    (left,) = told(layer)
    assert [source.principal for source in layer.explain(left.id).sources] == ["user:a"]


def test_an_owner_that_opts_out_takes_its_word_back(layer):
    around(layer)
    say(layer, "user:a", "user:c")
    layer.consolidate()
    layer.opt_out("user:c")
    (left,) = told(layer)
    assert [source.principal for source in layer.explain(left.id).sources] == ["user:a"]


def test_two_readers_have_merged_items_of_their_own(layer):
    grants = around(layer, readers=("user:b", "user:d"))
    say(layer, "user:a", "user:c")
    layer.consolidate()
    (first,), (second,) = told(layer, "user:b"), told(layer, "user:d")
    assert first.id != second.id
    with pytest.raises(UnknownIdError):
        layer.as_("user:d").explain(first.id)
    layer.revoke(grants["user:c", "user:d"].id)
    layer.consolidate()
    assert [update.contributors for update in told(layer, "user:b")] == [2]
    assert [update.contributors for update in told(layer, "user:d")] == [1]


def test_only_the_operator_tidies(layer):
    with pytest.raises(NotPermittedError):
        layer.as_("user:b").consolidate()


# -- contradiction -------------------------------------------------------------------------------


def test_of_two_verbs_about_one_thing_the_newer_event_holds(layer, clock):
    around(layer)
    old, new = clock(), clock() + timedelta(minutes=1)
    layer.observe(
        [
            Interaction(actor="user:a", target="item:9", verb="loved", at=old),
            Interaction(actor="user:a", target="item:9", verb="hated", at=new),
        ]
    )
    layer.drain()
    assert len(told(layer, word="9")) == 2
    assert layer.consolidate().superseded == 1
    assert [update.text for update in told(layer, word="9")] == ["user:a hated 9"]


def test_an_older_event_that_comes_in_late_does_not_take_the_newer_back(layer, clock):
    around(layer)
    layer.observe("user:a", "item:9", verb="hated", at=clock())
    layer.drain()
    clock.advance(hours=1)
    layer.observe("user:a", "item:9", verb="loved", at=clock() - timedelta(days=3))
    layer.drain()
    assert [update.text for update in told(layer, word="9")] == ["user:a loved 9"]
    layer.consolidate()
    assert [update.text for update in told(layer, word="9")] == ["user:a hated 9"]
    assert layer.consolidate().changes == {}


def test_what_one_said_again_of_a_thing_takes_its_older_words_back_and_nobody_elses(layer, clock):
    around(layer)
    for who in ("user:a", "user:c"):
        layer.observe(who, "item:9", verb="rated", text="Dune is dull in its first half")
    layer.drain()
    clock.advance(hours=1)
    layer.observe("user:a", "item:9", verb="rated", text="Dune is brilliant as a whole")
    layer.drain()
    assert layer.consolidate().superseded == 1
    assert {str(update.evidence[0].owner): "brilliant" in update.text for update in told(layer)} == {
        "user:a": True, "user:c": False,
    }  # fmt: skip


def test_another_outcome_of_the_same_ticket_takes_the_older_back(layer, clock):
    around(layer)
    layer.observe("user:a", "ticket:7", verb="tried", text="SSO Dune login loops", outcome="restarted it, failed")
    layer.drain()
    clock.advance(hours=1)
    layer.observe("user:a", "ticket:7", verb="solved", text="SSO Dune login loops", outcome="renewed the certificate")
    layer.drain()
    assert layer.consolidate().superseded == 1
    (update,) = told(layer)
    assert "certificate" in update.text


def test_two_notes_on_one_topic_both_hold(layer, clock):
    around(layer)
    for text in ("Dune needs a cache", "Dune needs an index"):
        layer.observe("user:a", "topic:dune", verb="solved", text=text)
        layer.drain()
        clock.advance(hours=1)
    assert layer.consolidate().superseded == 0
    assert len(told(layer)) == 2


def test_a_newer_version_of_a_native_memory_takes_the_older_back(layer, clock):
    around(layer)
    store = InMemoryBackend(clock=clock)
    ref = store.add("user:a", "Dune sits on the left shelf")
    layer.attach(store)
    layer.reconcile(store)
    clock.advance(minutes=1)
    store.edit(ref, "Dune sits on the right shelf")
    layer.reconcile(store)
    layer.drain()
    assert len(told(layer)) >= 1
    layer.consolidate()
    assert [update.text for update in told(layer)] == ["Dune sits on the right shelf"]


def test_contradicted_items_are_kept_as_history_for_a_month(layer, clock):
    around(layer)
    for verb in ("loved", "hated"):
        layer.observe("user:a", "item:9", verb=verb)
        layer.drain()
        clock.advance(minutes=1)
    layer.consolidate()
    (new,) = told(layer, word="9")
    (old,) = [id_ for id_, by in _items(layer, derived.c.id, derived.c.superseded) if by == new.id]
    assert layer.explain(old).text == "user:a loved 9"
    assert layer.explain(old).superseded_by == new.id
    clock.advance(days=29)
    layer.consolidate()
    assert layer.explain(old).text == "user:a loved 9"
    clock.advance(days=2)
    layer.consolidate()
    with pytest.raises(UnknownIdError):
        layer.explain(old)


# -- expiry --------------------------------------------------------------------------------------


def test_what_ran_out_leaves_the_database_after_its_grace_with_lineage_and_relations(layer, clock):
    around(layer)
    say(layer, "user:a", "user:c")
    layer.consolidate()
    (merged,) = told(layer)
    clock.advance(days=31)
    assert layer.consolidate().expired == 0
    assert layer.explain(merged.id).text is not None
    clock.advance(days=30)
    report = layer.consolidate()
    assert report.expired >= 3
    with pytest.raises(UnknownIdError):
        layer.explain(merged.id)
    kept = {id_ for (id_,) in _items(layer, derived.c.id)}
    assert {item for (item,) in _items(layer, lineage.c.item)} <= kept
    assert {end for pair in _items(layer, relations.c.item, relations.c.other) for end in pair} <= kept
    left = _items(layer, derived.c.text, derived.c.kind)
    assert not [text for text, kind in left if "Dune" in text and kind == FacetKind.UPDATE.value]


def test_storage_does_not_grow_for_ever(layer, clock):
    around(layer)
    counts = []
    for week in range(18):
        say(layer, "user:a", "user:c", text=f"Dune in week {week} is fine")
        layer.consolidate()
        counts.append(len(_items(layer, derived.c.id)))
        clock.advance(weeks=1)
    assert max(counts[11:]) <= max(counts[:11])


def test_one_owner_leaving_is_not_told_by_the_difference_after_a_night_either(layer, clock):
    tickets(layer, 9)
    grants = [layer.grant(f"agent:s{n}", "agent:new", "facets") for n in range(9)]
    layer.drain()
    before = layer.context("agent:new", "SSO login loop")
    assert before.facets
    clock.advance(days=100)
    layer.consolidate()
    layer.revoke(grants[8].id)
    layer.consolidate()
    shown = {facet.text for facet in layer.context("agent:new", "SSO login loop").facets}
    assert all(facet.text not in shown for facet in before.facets)


def test_one_owner_forgotten_is_not_told_by_the_difference_after_a_night_either(layer, clock):
    tickets(layer, 9)
    for n in range(9):
        layer.grant(f"agent:s{n}", "agent:new", "facets")
    layer.drain()
    assert layer.context("agent:new", "SSO login loop").facets
    layer.consolidate()
    layer.forget("agent:s8")
    for _ in range(3):
        clock.advance(days=50)
        layer.consolidate()
        assert layer.context("agent:new", "SSO login loop").facets == ()


def test_a_forgotten_item_is_not_made_again_after_any_number_of_nights(layer, clock):
    layer.observe("agent:a", text="Fixed the Go modules conflict by pinning version one")
    layer.grant("agent:a", "agent:b", "records")
    layer.drain()
    layer.forget(layer.context("agent:b", "go modules conflict").facets[0].id)
    for _ in range(3):
        clock.advance(days=50)
        layer.consolidate()
        assert layer.context("agent:b", "go modules conflict").facets == ()


# -- erasure -------------------------------------------------------------------------------------


def test_a_merged_item_goes_with_any_of_its_sources_and_the_others_are_told_again(layer):
    around(layer)
    first, _ = say(layer, "user:a", "user:c")
    layer.consolidate()
    (merged,) = told(layer)
    layer.forget(first)
    with pytest.raises(UnknownIdError):
        layer.explain(merged.id)
    (left,) = told(layer)
    assert [source.principal for source in layer.explain(left.id).sources] == ["user:c"]
    assert layer.consolidate().merged == 0


def test_older_merged_items_go_with_the_source_too(layer):
    around(layer)
    first, *_ = say(layer, "user:a", "user:c")
    layer.consolidate()
    say(layer, "user:a")
    layer.consolidate()
    assert len([id_ for (id_,) in _items(layer, derived.c.id) if id_.startswith("dm")]) == 2
    layer.forget(first)
    assert not [id_ for (id_,) in _items(layer, derived.c.id) if id_.startswith("dm")]


def test_a_merged_item_goes_with_one_of_its_parts(layer):
    around(layer)
    say(layer, "user:a", "user:c")
    layer.consolidate()
    (merged,) = told(layer)
    part = next(source.id for source in layer.explain(merged.id).sources if source.id.startswith("d"))
    layer.forget(part)
    with pytest.raises(UnknownIdError):
        layer.explain(merged.id)
    assert len(told(layer)) == 1


def test_a_forgotten_merged_item_takes_its_parts_along_and_is_not_made_again(layer):
    around(layer)
    say(layer, "user:a", "user:c")
    layer.consolidate()
    layer.forget(told(layer)[0].id)
    for _ in range(2):
        assert told(layer) == []
        assert layer.consolidate().merged == 0


def test_a_contributor_forgets_of_a_merged_item_only_what_rests_on_its_own_word(layer):
    around(layer)
    say(layer, "user:a", "user:c")
    layer.consolidate()
    layer.as_("user:c").forget(told(layer)[0].id)
    (left,) = told(layer)
    assert [source.principal for source in layer.explain(left.id).sources] == ["user:a"]
    assert layer.consolidate().merged == 0
    assert [update.id for update in told(layer)] == [left.id]


@pytest.mark.parametrize("whom", ["user:a", "user:b"])
def test_a_forgotten_entity_leaves_no_merged_item_and_no_relation(layer, whom):
    around(layer)
    say(layer, "user:a", "user:c")
    say(layer, "user:a", "user:c", text="Dune has worms in the desert")
    layer.consolidate()
    assert _items(layer, relations.c.item)
    layer.forget(whom)
    kept = {id_ for (id_,) in _items(layer, derived.c.id)}
    assert not [id_ for id_ in kept if id_.startswith("dm")]
    assert {end for pair in _items(layer, relations.c.item, relations.c.other) for end in pair} <= kept
    layer.consolidate()
    assert layer.consolidate().changes == {}


# -- relations -----------------------------------------------------------------------------------


def test_explain_names_related_items_that_the_reader_may_see(layer):
    grants = around(layer)
    say(layer, "user:a", text="Dune needs water in the desert")
    say(layer, "user:c", text="Dune has no water for the desert worms")
    assert layer.consolidate().related > 0
    reader = layer.as_("user:b")
    of = {str(update.evidence[0].owner): update.id for update in told(reader)}
    assert of["user:c"] in reader.explain(of["user:a"]).related
    layer.revoke(grants["user:c", "user:b"].id)
    assert of["user:c"] not in reader.explain(of["user:a"]).related
    assert of["user:c"] not in layer.explain(of["user:a"]).related, "it is erased"


def test_relations_are_replaced_as_a_set_and_rewrite_nobody(layer):
    around(layer)
    say(layer, "user:a", text="Dune needs water in the desert")
    layer.consolidate()
    before = {row for row in _items(layer, derived.c.id, derived.c.text)}
    first = set(_items(layer, relations.c.item, relations.c.other))
    say(layer, "user:c", text="Dune has no water for the desert worms")
    layer.consolidate()
    second = set(_items(layer, relations.c.item, relations.c.other))
    assert second != first
    assert before <= set(_items(layer, derived.c.id, derived.c.text))
    per_item = {item: [pair for pair in second if pair[0] == item] for item, _ in second}
    assert max(len(pairs) for pairs in per_item.values()) <= 4


# -- deliveries and stores -----------------------------------------------------------------------


def test_a_store_that_is_delivered_to_gets_the_merged_item_instead_of_its_parts(layer, clock):
    store = InMemoryBackend()
    layer.attach(store, deliver=True)
    grants = around(layer)
    say(layer, "user:a", "user:c")
    assert len([text for text in store.texts() if "Dune" in text]) == 2
    report = layer.consolidate()
    assert (report.queued, report.retracted) == (1, 2)
    layer.drain()
    assert len([text for text in store.texts() if "Dune" in text]) == 1
    assert layer.consolidate().changes == {}
    layer.revoke(grants["user:c", "user:b"].id)
    layer.drain()
    (left,) = told(layer)
    assert len([text for text in store.texts() if "Dune" in text]) == 1
    assert (left.id, "delivered") in _items(layer, deliveries.c.item, deliveries.c.state)
    assert layer.health().condition == "ok"


def test_what_is_contradicted_or_ran_out_is_taken_back_from_the_store(layer, clock):
    store = InMemoryBackend()
    layer.attach(store, deliver=True)
    around(layer)
    for verb in ("loved", "hated"):
        layer.observe("user:a", "item:9", verb=verb)
        layer.drain()
        clock.advance(minutes=1)
    assert [text for text in store.texts() if text.endswith(" 9")] == ["user:a hated 9"], "by the worker itself"
    layer.consolidate()
    layer.drain()
    assert [text for text in store.texts() if text.endswith(" 9")] == ["user:a hated 9"]
    clock.advance(days=31)
    layer.consolidate()
    layer.drain()
    assert store.texts() == []


def test_the_owners_own_stores_are_not_asked_for_anything(layer):
    store = InMemoryBackend()
    for who in ("user:a", "user:c"):
        store.add(who, SAID)
    around(layer)
    layer.index(store)
    layer.drain()
    before = dict(store.calls)
    assert layer.consolidate().merged == 1
    assert dict(store.calls) == before


# -- the run itself --------------------------------------------------------------------------------


def test_each_run_leaves_one_row_of_audit_with_its_counts_and_a_dry_run_none(layer):
    around(layer)
    say(layer, "user:a", "user:c")
    layer.consolidate(dry_run=True)
    reports = [layer.consolidate(), layer.consolidate()]
    with database(layer).read() as connection:
        query = select(audit.c.subject).where(audit.c.action == "consolidate").order_by(audit.c.id)
        assert [json.loads(one) for one in connection.execute(query).scalars()] == [one.changes for one in reports]


def test_progress_ends_where_it_said_it_would(layer):
    around(layer)
    say(layer, "user:a", "user:c")
    seen = []
    layer.consolidate(progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert seen[-1][0] == seen[-1][1] > 0
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_two_processes_at_once_do_it_once(layer, database_url, clock):
    around(layer, readers=[f"user:r{n}" for n in range(6)])
    say(layer, "user:a", "user:c", "user:a")
    with CollabLayer.open(database_url, tenant="acme", settings=Settings(worker=False), clock=clock) as second:
        reports: list[Consolidation] = []
        threads = [
            threading.Thread(target=lambda one=one: reports.append(one.consolidate())) for one in (layer, second)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(reports) == 2
    assert sorted(report.merged for report in reports) == [0, 6]
    assert layer.consolidate().changes == {}


def test_what_is_made_anew_at_every_read_reads_as_before(layer):
    around(layer)
    say(layer, "user:a")
    layer.context("user:b", "desert book")
    say(layer, "user:c", text=f"{SAID}!")
    before = layer.context("user:b", "desert book").facets
    assert {facet.kind for facet in before} >= {FacetKind.LESSON}
    layer.consolidate()
    after = layer.context("user:b", "desert book").facets
    assert [(facet.id, facet.text) for facet in after] == [(facet.id, facet.text) for facet in before]


def test_a_newer_update_in_the_place_of_a_merged_one_is_not_undone_by_the_night(layer):
    """The memory model may put an update of its own where a merged one stood, under its key."""
    around(layer)
    say(layer, "user:a", "user:c")
    layer.consolidate()
    (merged,) = told(layer)
    with database(layer).write() as connection:
        item = stored.get(connection, "acme", [merged.id])[merged.id]
        newer = replace(item, id="d" + "1" * 31, text="Dune is the best desert book, and long")
        stored.put(connection, "acme", [newer])
        bump(connection, "acme")
    assert [update.id for update in told(layer)] == [newer.id]
    for _ in range(2):
        layer.consolidate()
        assert [update.id for update in told(layer)] == [newer.id]
    assert layer.explain(merged.id).superseded_by == newer.id
