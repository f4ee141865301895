"""Which records share most words with a question: the same ones on every machine, whatever order they lie in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collab_layer.graph.index import CardColumns
from collab_layer.graph.reader import heaviest

cards = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 1.5]), st.integers(0, 3)), max_size=40)


@given(cards, st.integers(1, 40), st.randoms())
def test_the_heaviest_are_taken_and_of_equal_ones_the_newest(told, count, random):
    order = random.sample(range(len(told)), len(told))  # a card's id says nothing of its row
    id_ = np.array(order, np.int64)
    weight = np.array([told[card][0] for card in order])
    at = np.array([told[card][1] for card in order], np.int64)
    found = heaviest(columns(id_, at), weight, count)
    best = sorted(
        (row for row in range(len(told)) if weight[row] > 0), key=lambda row: (-weight[row], -at[row], -id_[row])
    )
    assert found.tolist() == sorted(best[:count])


def columns(id_, at):
    nothing = np.zeros(len(id_), np.int64)
    yes = np.ones(len(id_), np.bool_)
    return CardColumns(id_, nothing, at, nothing, nothing, nothing, yes, yes)
