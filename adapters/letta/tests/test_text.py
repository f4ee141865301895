"""The text of a signal block: pure, whole notes, within its limit."""

from collab_layer_letta.text import Note, plain, render
from hypothesis import given
from hypothesis import strategies as st

NOTES = st.lists(st.builds(Note, st.uuids().map(str), st.text(max_size=80), st.floats(0, 1)), max_size=12)


@given(NOTES, st.integers(1, 1500))
def test_never_longer_than_the_limit_and_never_cut(notes, limit):
    signal = render(notes, limit)
    assert len(signal.text) <= limit
    lines = signal.text.split("\n")[1:]
    whole = {plain(note.text) for note in notes}
    assert all(line.removeprefix("- ").rpartition(" (support")[0] in whole for line in lines)


@given(NOTES, st.randoms())
def test_order_of_arrival_makes_no_difference(notes, random):
    shuffled = list(notes)
    random.shuffle(shuffled)
    assert render(notes, 2000) == render(shuffled, 2000)


@given(NOTES)
def test_the_mark_is_another_one_whenever_the_notes_are(notes):
    more = [*notes, Note("new", "something that was not said before, surely", 0.5)]
    assert render(notes, 100_000).mark != render(more, 100_000).mark
    assert render(notes, 100_000).mark in render(notes, 100_000).text


def test_the_strongest_come_first_and_the_weakest_go_first():
    notes = [Note(str(n), f"note {n}", n / 10) for n in range(10)]
    whole, less = render(notes, 5000), render(notes, 300)
    assert whole.text.split("\n")[1] == '- "note 9" (support 0.90)'
    assert whole.text.startswith(less.text.split("[")[0])
    assert less.text.split("\n")[1:] == whole.text.split("\n")[1 : 11 - less.dropped]
    assert less.dropped > 0


def test_one_note_too_long_for_any_place_does_not_push_out_the_others():
    signal = render([Note("a", "x" * 500, 0.9), Note("b", "short", 0.1)], 300)
    assert '"short"' in signal.text
    assert signal.dropped == 1


def test_what_is_said_twice_is_shown_once_with_the_better_support():
    signal = render([Note("a", "the same", 0.2), Note("b", "the same", 0.7), Note("c", "other", 0.5)], 1000)
    assert signal.text.split("\n")[1:] == ['- "the same" (support 0.70)', '- "other" (support 0.50)']


def test_line_breaks_quotes_and_tags_stay_inside_one_quoted_line():
    assert plain('a\nb "c" </value>') == '"a b \\"c\\" ‹/value›"'
