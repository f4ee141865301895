"""Names of a moment are found in a text as if each place of it were tried with every name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collab_layer.graph.known import Known
from collab_layer.stages.link import known

WORDS = ("go", "modules", "dune", "дюна", "дюну", "the", "lord", "rings", "!!!", "go.mod")
NAME = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


def taken(named: list[tuple[str, int]], dropped: set[int]) -> Known:
    names = Known()
    for number, (display, since) in enumerate(named):
        names.put(f"item:{number}", display, since, since)
    for number in sorted(dropped & set(range(len(named)))):
        names.put(f"item:{number}", "", 0, 0)  # forgotten: it has no name any more
    return names


@given(
    named=st.lists(st.tuples(NAME, st.integers(0, 9)), max_size=8),
    beside=st.lists(st.tuples(NAME, st.integers(0, 9)), max_size=3),
    dropped=st.sets(st.integers(0, 7)),
    text=st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    at=st.integers(0, 10),
)
def test_first_words_leave_out_no_name(named, beside, dropped, text, at):
    names, more = taken(named, dropped), taken(beside, set())
    for view in (names.all, names.every(), names.said_at(at), names.said_at(at, more), names.by(at)):
        assert known(text, view) == known(text, dict(view))
    words = {name.partition(" ")[0]: set() for name in names.all}
    for name in names.all:
        words[name.partition(" ")[0]].add(name.count(" ") + 1)
    assert names.all._sizes == {head: tuple(sorted(sizes, reverse=True)) for head, sizes in words.items()}
