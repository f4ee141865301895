from __future__ import annotations

import numpy as np
import pytest

from collab_layer.stages.feedback import LEAST, feedback, link_rows, pays


def kinds(count: int, seed: int, noise: float) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """Records of six kinds: a vector near their kind's, and two links of their own kind."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 6, count)
    centres = rng.normal(size=(6, 24))
    vectors = centres[kind] + noise * rng.normal(size=(count, 24))
    vectors -= vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors, [(2 * int(one), 2 * int(one) + 1) for one in kind]


def test_records_linked_like_the_best_hits_come_next() -> None:
    rows = link_rows([(1, 2), (1, 2), (3,), (1, 2), ()])
    scores = feedback(rows, np.array([0, 1]))
    assert scores[3] > scores[2]
    assert scores[4] == 0


def test_a_rare_link_weighs_more_than_a_common_one() -> None:
    rows = link_rows([(1, 9), (1,), (1,), (1,), (9,)])
    scores = feedback(rows, np.array([0]))
    assert scores[4] > scores[1]


def test_it_pays_where_links_tell_what_blurred_texts_do_not() -> None:
    vectors, links = kinds(200, 3, noise=3.0)
    assert pays(vectors, link_rows(links))


@pytest.mark.parametrize("seed", range(8))
def test_it_does_not_pay_where_links_have_nothing_to_do_with_the_texts(seed: int) -> None:
    vectors, links = kinds(200, seed, noise=3.0)
    order = np.random.default_rng(seed + 100).permutation(len(links))
    assert not pays(vectors, link_rows([links[at] for at in order]))


def test_it_does_not_pay_where_text_finds_everything_by_itself() -> None:
    vectors, links = kinds(60, 1, noise=0.01)
    assert not pays(vectors, link_rows(links))


def test_too_few_cases_prove_nothing() -> None:
    vectors, links = kinds(LEAST - 1, 3, noise=3.0)
    assert not pays(vectors, link_rows(links))


def test_records_without_links_prove_nothing() -> None:
    vectors, _ = kinds(100, 3, noise=1.0)
    assert not pays(vectors, link_rows([()] * 100))
