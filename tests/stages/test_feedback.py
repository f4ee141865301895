from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from collab_layer.stages.feedback import ALIKE, BEST, LEAST, feedback, link_rows, pays
from collab_layer.stages.search import rank_records
from collab_layer.types.graph import Corpus


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


def one_by_one(vectors: np.ndarray, rows: np.ndarray) -> bool:
    """What `pays` promises, case by case."""
    count, z = len(rows), lambda values: (values - values.mean()) / (values.std() or 1.0)
    discounts = 1 / np.log2(np.arange(BEST) + 2.0)
    found: list[tuple[float, float, float]] = []
    for case in range(count):
        others = np.delete(np.arange(count), case)
        alike = others[rows[others] @ rows[case] >= ALIKE]
        if not len(alike):
            continue
        text = z(vectors[others] @ vectors[case])
        votes = discounts @ rows[others[np.argsort(-text)[:BEST]]]
        ways = (text, text + z(rows[others] @ rows.mean(axis=0)), text + z(rows[others] @ votes))
        share = [np.isin(others[np.argsort(-way)[:BEST]], alike).sum() / min(len(alike), BEST) for way in ways]
        found.append((share[0], share[1], share[2]))
    if len(found) < LEAST:
        return False
    text, common, feedback = np.array(found).T
    gain = feedback - max(text, common, key=np.mean)
    return bool(gain.mean() - 1.645 * gain.std(ddof=1) / len(gain) ** 0.5 > 0)


@pytest.mark.parametrize("seed", range(24))
def test_all_cases_at_once_say_what_one_by_one_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, links = kinds(int(rng.integers(30, 180)), seed, noise=float(rng.uniform(0.5, 4.0)))
    drawn = [tuple({*mine, *rng.integers(20, 60, 2).tolist()}) for mine in links]
    rows = link_rows([mine if rng.random() < 0.8 else () for mine in drawn])
    assert pays(vectors, rows) == one_by_one(vectors, rows)


def test_records_without_links_prove_nothing() -> None:
    vectors, _ = kinds(100, 3, noise=1.0)
    assert not pays(vectors, link_rows([()] * 100))


def corpus(held: tuple[tuple[int, ...], ...]) -> Corpus:
    """Four records; only the first shares the query's word, the last two lie far from it."""
    return Corpus(
        cards=np.array([1, 2, 3, 4]),
        owners=np.array([1, 2, 3, 4]),
        tf=np.array([[1.0], [1.0], [0.0], [0.0]]),
        length=np.array([5.0, 9.0, 5.0, 5.0]),
        df=np.array([2.0]),
        total=4,
        mean_length=6.0,
        similarity=np.array([0.8, 0.5, 0.0, 0.0]),
        link_cosine=np.zeros(4),
        thread=np.array([-1, -2, -3, -4]),
        held=held,
    )


def test_a_record_linked_like_the_best_hits_stands_beside_them_and_below() -> None:
    scores = rank_records(corpus(((7, 8), (7, 8), (7, 8), (9,))))
    assert np.isfinite(scores).tolist() == [True, True, True, False]
    assert scores[2] < scores[0]


def test_without_links_only_what_has_to_do_with_the_query_stands() -> None:
    assert np.isfinite(rank_records(corpus(()))).tolist() == [True, True, False, False]


def test_links_bring_nothing_where_no_record_has_to_do_with_the_query() -> None:
    nothing = replace(corpus(((7, 8), (7, 8), (7, 8), (9,))), tf=np.zeros((4, 1)), similarity=np.zeros(4))
    assert not np.isfinite(rank_records(nothing)).any()
