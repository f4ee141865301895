"""Only a newer event about the same thing takes something back."""

import pytest

from collab_layer.stages.contradiction import ADDING, contradicted, overtaken

from .pieces import event, piece


def test_what_was_said_again_of_the_same_thing_takes_the_older_back():
    old, new = piece("d1", event=event(1)), piece("d2", event=event(2))
    assert contradicted([new, old]) == {"d1": "d2"}


def test_the_newest_of_several_takes_all_others_back():
    several = [piece(f"d{n}", event=event(n)) for n in (2, 4, 1, 3)]
    assert contradicted(several) == {"d1": "d4", "d2": "d4", "d3": "d4"}


def test_the_time_of_the_event_counts_and_not_that_of_the_telling():
    late = piece("d1", at=99, event=event(1))
    early = piece("d2", at=10, event=event(2))
    assert contradicted([late, early]) == {"d1": "d2"}


@pytest.mark.parametrize(
    "other",
    [
        event(2, actor=2),
        event(2, target=6),
        event(2, target=None),
        event(2, "opened"),
    ],
    ids=["another actor", "another thing", "no thing", "another verb"],
)
def test_what_another_did_or_what_was_done_to_another_thing_takes_nothing_back(other):
    assert contradicted([piece("d1", event=event(1)), piece("d2", event=other)]) == {}


@pytest.mark.parametrize("verb", sorted(ADDING))
def test_verbs_that_only_mention_take_nothing_back(verb):
    assert contradicted([piece("d1", event=event(1, verb)), piece("d2", event=event(2, verb))]) == {}


def test_one_key_with_two_verbs_is_decided_by_the_newer_event():
    old = piece("d1", "a loved Dune", key="k", event=event(1, "loved"))
    new = piece("d2", "a hated Dune", key="k", event=event(2, "hated"))
    assert contradicted([old, new]) == {"d1": "d2"}


def test_a_newer_version_of_a_native_memory_takes_the_older_back():
    ref = ("mem0", "m1")
    old = piece("d1", event=event(1, "remembered", target=None, ref=ref))
    new = piece("d2", event=event(2, "remembered", target=None, ref=ref))
    other = piece("d3", event=event(3, "remembered", target=None, ref=("mem0", "m2")))
    assert contradicted([old, new, other]) == {"d1": "d2"}


def test_another_end_of_the_same_thread_takes_the_older_back_whatever_the_verb():
    old = piece("d1", event=event(1, "tried", ended=True))
    new = piece("d2", event=event(2, "solved", ended=True))
    assert contradicted([old, new]) == {"d1": "d2"}
    assert contradicted([old, piece("d2", event=event(2, "solved"))]) == {}


def test_two_wordings_of_one_event_contradict_nothing():
    assert contradicted([piece("d1", event=event(1)), piece("d2", event=event(1))]) == {}


def test_items_of_different_kinds_contradict_nothing():
    assert contradicted([piece("d1", event=event(1)), piece("d2", kind="lesson", event=event(2))]) == {}


def test_opposite_words_without_an_event_contradict_nothing():
    assert contradicted([piece("d1", "a loves Dune"), piece("d2", "a hates Dune")]) == {}


def test_an_older_event_that_came_in_late_is_found():
    newest = piece("d1", key="k", at=10, superseded="d2", event=event(8))
    late = piece("d2", key="k", at=20, event=event(3))
    assert overtaken([newest, late]) == {"d1": late}
    assert overtaken([piece("d1", key="k", superseded="d2", event=event(1)), late]) == {}
