"""One item for several that say the same: nobody reads more by it, and nobody counts for more."""

from dataclasses import replace
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collab_layer.stages.merging import duplicates, joint, voices_of

from .pieces import piece

UNIT = st.floats(0, 1, allow_nan=False)


def one(*parts, delta=0.25):
    (merged,) = duplicates(parts, delta=delta)
    return merged


def test_two_that_say_the_same_become_one_on_the_word_of_both():
    merged = one(piece("d1", principal=1), piece("d2", "dune is LONG", principal=2))
    assert merged.parts == ("d1", "d2")
    assert {(source, principal) for source, principal, _ in merged.sources} == {
        ("i1", 1), ("i2", 2), ("d1", 1), ("d2", 2),
    }  # fmt: skip
    assert isclose(sum(weight for _, _, weight in merged.sources), 1)


def test_the_wording_is_one_of_the_parts_as_it_is_the_best_supported():
    merged = one(piece("d1", "dune is long", confidence=0.1), piece("d2", "Dune is LONG", confidence=0.2))
    assert (merged.text, merged.worded) == ("Dune is LONG", "d2")


@pytest.mark.parametrize(
    "other",
    [
        piece("d2", links=(8,)),
        piece("d2", links=(9, 8)),
        piece("d2", kind="lesson"),
        piece("d2", "Dune is not long"),
        piece("d2", mergeable=False),
    ],
    ids=["other links", "more links", "other kind", "a negation", "held back"],
)
def test_what_differs_in_more_than_its_wording_stays_apart(other):
    assert duplicates([piece("d1"), other], delta=0.25) == []


def test_items_of_different_principals_join_only_where_the_reader_reads_all_of_them_anyhow():
    open_, bound = piece("d1", principal=1), piece("d2", principal=2, readable=False)
    assert duplicates([open_, bound], delta=0.25) == []
    assert duplicates([bound, piece("d3", principal=3, readable=False)], delta=0.25) == []
    assert one(bound, piece("d4", principal=2, readable=False)).parts == ("d2", "d4")


def test_trust_is_the_least_and_the_end_the_last():
    merged = one(piece("d1", trust=0.4, expires=50, hop=2), piece("d2", trust=0.9, expires=70, at=20))
    assert (merged.trust, merged.expires, merged.hop, merged.at) == (0.4, 70, 2, 20)


def test_saying_it_often_makes_nobody_surer():
    assert isclose(one(*(piece(f"d{n}", confidence=0.2) for n in range(9))).confidence, 0.2)


def test_independent_principals_make_it_surer_but_never_by_a_sum():
    merged = one(*(piece(f"d{n}", principal=n, confidence=0.25) for n in range(1, 9)))
    assert 0.25 < merged.confidence < 1
    assert isclose(merged.confidence, 1 - 0.75**8)


def test_one_confident_item_counts_for_no_more_than_delta():
    assert one(piece("d1", confidence=1.0), piece("d2", confidence=1.0), delta=0.1).confidence <= 0.1 + 1e-9


def test_a_part_of_several_principals_says_no_less_than_it_said():
    sources = (("i1", 1, 0.5), ("i2", 2, 0.5))
    assert isclose(joint(voices_of([piece("d1", sources=sources, confidence=0.4)], 0.25).values()), 0.4)


@given(
    st.lists(st.tuples(UNIT, st.sets(st.integers(1, 5), min_size=1)), min_size=1, max_size=6),
    st.floats(0.01, 1),
)
def test_no_principal_moves_a_merged_confidence_by_more_than_delta(said, delta):
    parts = [
        piece(f"d{n}", confidence=confidence, sources=tuple((f"i{n}.{who}", who, 1 / len(of)) for who in sorted(of)))
        for n, (confidence, of) in enumerate(said)
    ]
    voices = voices_of(parts, delta)
    whole = joint(voices.values())
    assert 0 <= whole <= 1
    for who in voices:
        without = joint(voice for other, voice in voices.items() if other != who)
        assert -1e-9 <= whole - without <= delta + 1e-9


@given(st.permutations([piece(f"d{n}", principal=n % 3 + 1, confidence=n / 10) for n in range(5)]))
def test_the_order_of_the_items_does_not_count(pieces):
    assert duplicates(pieces, delta=0.25) == duplicates(sorted(pieces, key=lambda p: p.id), delta=0.25)


def test_russian_merges_as_english_does():
    said = piece("d1", "Сервер упал после обновления", principal=1)
    merged = one(said, replace(said, id="d2", text="Серверы упали после обновления!", sources=(("i2", 2, 1.0),)))
    assert merged.parts == ("d1", "d2")
    assert duplicates([said, replace(said, id="d2", text="Сервер не упал после обновления")], delta=0.25) == []
