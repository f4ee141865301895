"""What changes for one reader; once it is written, nothing changes any more."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.stages.consolidate import tidy
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER
from collab_layer.types.upkeep import MERGED, SPLIT, Merged

from .pieces import event, piece, written

NOW, GRACE = 1_000, 100


def name(one: Merged) -> str:
    return f"{MERGED}{'.'.join(one.parts)}-{one.confidence:.9f}"


def tidied(pieces, now=NOW):
    return tidy(pieces, now=now, delta=0.25, grace=GRACE, name=name)


def after(pieces, now=NOW):
    return written(pieces, tidied(pieces, now))


def shown(pieces, now=NOW):
    return {one.id: one.text for one in pieces if one.superseded is None and one.expires > now}


def test_parts_stand_behind_the_merged_item_with_their_words_and_ends():
    state = after([piece("d1"), piece("d2"), piece("d3", "Emma is short")])
    (merged,) = (one for one in state if one.id.startswith(MERGED))
    assert set(shown(state)) == {merged.id, "d3"}
    parts = [one for one in state if one.superseded == merged.id]
    assert {(one.id, one.text, one.expires) for one in parts} == {
        ("d1", "Dune is long", FOREVER), ("d2", "Dune is long", FOREVER),
    }  # fmt: skip


def test_a_further_part_makes_a_new_merged_item_and_the_old_one_steps_back_for_it():
    first = after([piece("d1"), piece("d2")])
    (old,) = shown(first)
    second = after([*first, piece("d3")])
    (new,) = shown(second)
    assert new != old
    assert {one.id: one.superseded for one in second} == {"d1": new, "d2": new, "d3": new, old: new, new: None}
    assert {one.id: one.expires for one in second}[old] == NOW


def test_a_merged_item_that_may_not_be_read_whole_any_more_is_taken_apart():
    first = after([piece("d1", principal=1), piece("d2", principal=2)])
    (merged,) = shown(first)
    revoked = [replace(one, readable=one.id == "d1") for one in first]
    second = after(revoked)
    assert set(shown(second)) == {"d1", "d2"}
    assert {one.id: one.superseded for one in second}[merged] == SPLIT
    again = after([replace(one, readable=True) for one in second])
    assert set(shown(again)) == {merged}, "permitted again: the same item as before"


def test_a_part_that_ran_out_leaves_the_merged_item():
    first = after([piece("d1", expires=1_500), piece("d2", expires=2_000), piece("d3", expires=2_000)])
    (merged,) = shown(first)
    later = after(first, now=1_600)
    (other,) = shown(later, 1_600)
    assert other != merged
    (last,) = (one for one in later if one.id == other)
    assert {source for source, _, _ in last.sources} == {"i2", "i3", "d2", "d3"}
    assert set(shown(after([one for one in later if one.id != "d2"], now=1_600), 1_600)) == {"d3"}


def test_contradicted_items_keep_their_words_for_their_grace():
    state = after([piece("d1", "a loved Dune", event=event(1)), piece("d2", "a hated Dune", event=event(2))])
    assert shown(state) == {"d2": "a hated Dune"}
    old = next(one for one in state if one.id == "d1")
    assert (old.superseded, old.text, old.expires) == ("d2", "a loved Dune", NOW)
    assert {one.id for one in after(state, NOW + GRACE - 1)} == {"d1", "d2"}
    assert {one.id for one in after(state, NOW + GRACE)} == {"d2"}


def test_a_contradicted_part_takes_the_merged_item_along():
    first = after([piece("d1", event=event(1)), piece("d2", principal=2)])
    (merged,) = shown(first)
    second = after([*first, piece("d3", "Dune bores me", event=event(2))])
    assert set(shown(second)) == {"d2", "d3"}
    assert {one.id: one.superseded for one in second}[merged] == SPLIT


def test_parts_step_back_for_what_the_worker_put_in_the_place_of_their_merged_item():
    first = after([piece("d1", principal=1), piece("d2", principal=2)])
    (merged,) = (one for one in first if one.id.startswith(MERGED))
    told = piece("d3", "Dune is longer than it was", key=merged.key)
    state = [*(replace(one, superseded="d3") if one is merged else one for one in first), told]
    second = after(state)
    assert set(shown(second)) == {"d3"}
    assert {one.id: one.superseded for one in second} == {"d1": "d3", "d2": "d3", "d3": None, merged.id: "d3"}


def test_what_is_made_anew_at_every_read_is_neither_merged_nor_superseded():
    lessons = [piece(f"d{n}", kind="lesson", event=event(n)) for n in (1, 2)]
    facets = [piece(f"d{n}", kind="facet") for n in (3, 4)]
    out = tidied([*lessons, *facets])
    assert (out.marks, out.ends, out.made) == ({}, {}, {})
    assert out.current == ["d1", "d2", "d3", "d4"]


def test_an_expired_item_still_takes_older_ones_back():
    state = after([piece("d1", event=event(1)), piece("d2", "over", expires=NOW - 1, event=event(2))])
    assert shown(state) == {}


def test_what_ran_out_is_deleted_after_its_grace_and_not_before():
    pieces = [piece("d1", expires=NOW - GRACE), piece("d2", "other", expires=NOW - GRACE + 1)]
    assert tidied(pieces).deleted == ["d1"]


def test_items_superseded_elsewhere_get_an_end_so_that_they_do_not_stay_for_ever():
    state = [piece("d1", superseded="d9"), piece("d9", "other")]
    out = tidied(state)
    assert out.ends == {"d1": NOW}
    assert tidied(written(state, out), NOW + GRACE).deleted == ["d1"]


def test_a_published_facet_is_never_merged_and_stays_until_another_stands_in_its_place():
    old = NOW - 10 * GRACE
    facets = [piece(f"d{n}", kind="facet", level=Level.FACETS, expires=old) for n in (1, 2)]
    out = tidied(facets)
    assert not out.made
    assert not out.deleted
    assert not out.marks
    superseded = piece("d3", kind="facet", level=Level.FACETS, expires=old, superseded="d1")
    assert tidied([*facets, superseded]).deleted == ["d3"]


def test_the_newest_event_is_shown_again_when_an_older_one_came_in_late():
    newest = piece("d1", "a hated Dune", key="k", superseded="d2", event=event(8, "hated"))
    late = piece("d2", "a loved Dune", key="k", at=20, event=event(3, "loved"))
    assert shown(after([newest, late])) == {"d1": "a hated Dune"}


PIECES = st.builds(
    lambda text, principal, at, verb, target, end, level, key, readable, links: {
        "text": text, "principal": principal, "at": at, "expires": end, "level": level, "readable": readable,
        "links": links, "event": event(at, verb, actor=principal, target=target) if verb else None,
        **({"key": key} if key else {}),
    },
    text=st.sampled_from(["Dune is long", "dune is LONG", "Dune is not long", "Emma is short"]),
    principal=st.integers(1, 3),
    at=st.integers(1, 30),
    verb=st.sampled_from([None, "liked", "hated", "noted"]),
    target=st.integers(1, 2),
    end=st.sampled_from([NOW - GRACE - 1, NOW - 1, NOW + 5, FOREVER]),
    level=st.sampled_from([Level.RECORDS, Level.RECORDS, Level.FACETS]),
    key=st.sampled_from([None, "k1", "k2"]),
    readable=st.booleans(),
    links=st.sampled_from([(9,), (9, 8)]),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=8), st.lists(PIECES, max_size=4), st.sampled_from([0, 3, 50, GRACE, 3 * GRACE]))
def test_a_second_run_changes_nothing_whatever_came_in_before(first, later, passed):
    state = after([piece(f"d{n}", **one) for n, one in enumerate(first)])
    state += [piece(f"d{100 + n}", **one) for n, one in enumerate(later)]
    now = NOW + passed
    state = after(state, now)
    again = tidied(state, now)
    assert not again.counts
    assert (again.marks, again.ends, again.made, again.deleted) == ({}, {}, {}, [])


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=8))
def test_nothing_that_was_shown_and_still_holds_is_lost_by_merging(made):
    pieces = [piece(f"d{n}", **{**one, "event": None}) for n, one in enumerate(made)]
    state = after(pieces)
    told = {one.id for one in state if one.superseded is None and one.expires > NOW}
    for one in state:
        if one.expires > NOW and one.id not in told:
            assert one.superseded in told
    assert {source for one in state if one.id in told for source, _, _ in one.sources} >= {
        source for one in pieces if one.expires > NOW for source, _, _ in one.sources
    }
