from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from collab_layer.builtin.embedder import HashingEmbedder
from collab_layer.stages.search import best_first, bm25, fill, rank_records, shares
from collab_layer.stages.tokens import terms
from collab_layer.types.graph import Corpus

EMBEDDER = HashingEmbedder()

NOTES = [
    "Pinned the Go module versions and ran go mod tidy to solve the checksum conflict.",
    "SSO login fails when the redirect URI lacks the tenant; register the exact URI.",
    "pip could not resolve numpy and pandas together; pinned numpy below 2.",
    "Закрепили версии модулей Go, чтобы убрать конфликт контрольных сумм.",
    "Вход через SSO не работал: в настройках не было адреса возврата.",
    "Клиенту вернули сбор за перенос рейса, потому что рейс отменила авиакомпания.",
    "The refund of the change fee was granted since the airline cancelled the flight.",
    "The database pool ran dry because sessions were not closed in the worker.",
]


def corpus(query: str, notes: list[str] = NOTES, *, links: list[float] | None = None, thread: list[int] | None = None):
    """What the graph would hand over for a query."""
    asked = sorted(set(terms(query)))
    counts = [Counter(terms(note)) for note in notes]
    tf = np.array([[count[term] for term in asked] for count in counts], float).reshape(len(notes), len(asked))
    length = np.array([max(1, count.total()) for count in counts], float)
    size = len(notes)
    return Corpus(
        cards=np.arange(size) + 100,
        owners=np.arange(size),
        tf=tf,
        length=length,
        df=(tf > 0).sum(axis=0).astype(float),
        total=size,
        mean_length=float(length.mean()) if size else 1.0,
        similarity=(EMBEDDER.vectors(notes) @ EMBEDDER.vectors([query])[0]).astype(float),
        link_cosine=np.array(links if links is not None else [0.0] * size),
        thread=np.array(thread if thread is not None else range(size)),
    )


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("How do I fix a Go module checksum mismatch?", 0),
        ("redirect URI missing for SSO", 1),
        ("как исправить конфликт модулей Go", 3),
        ("вернуть клиенту деньги за отменённый рейс", 5),
        ("airline cancelled, refund?", 6),
    ],
)
def test_the_record_about_the_question_comes_first(query, best):
    assert int(np.argmax(rank_records(corpus(query)))) == best


@pytest.mark.parametrize(
    "query",
    [
        "sourdough bread recipe",
        "best violin teacher for children",
        "how does photosynthesis work in desert plants",
        "рецепт борща со свёклой",
        "когда сажать розы в открытый грунт",
        "how are you?",
        "что это такое",
        "",
    ],
)
def test_an_unrelated_query_brings_nothing(query):
    assert not np.isfinite(rank_records(corpus(query))).any()


def test_one_everyday_word_does_not_make_a_foreign_query_relevant():
    notes = [
        f"The worker {verb} and we solved the problem quickly" for verb in ("crashed", "hung", "restarted", "slept")
    ]
    query = "problem with sourdough starter fermentation in cold kitchens"
    assert not np.isfinite(rank_records(corpus(query, notes))).any()
    assert np.isfinite(rank_records(corpus("problem with the worker", notes))).all()


def test_a_near_spelling_is_found_without_a_shared_word():
    scores = rank_records(corpus("kubernets", ["kubernetes", "violin lessons", "sourdough bread"]))
    assert np.isfinite(scores).tolist() == [True, False, False]


def test_a_link_the_caller_passed_keeps_a_record_and_lifts_it():
    query = "Go module conflict"
    plain = rank_records(corpus(query))
    linked = rank_records(corpus(query, links=[0, 0, 0, 1.0, 0, 0, 0, 0]))
    assert np.argmax(plain) == 0
    assert linked[3] - linked[0] > plain[3] - plain[0]
    assert np.isfinite(rank_records(corpus("sourdough", links=[0, 0, 0, 0, 0, 0, 0, 0.4])))[7]


def test_links_weigh_nothing_when_told_so_or_when_none_were_passed():
    query = "Go module conflict"
    links = [0, 0, 0, 1.0, 0, 0, 0, 0]
    np.testing.assert_allclose(
        rank_records(corpus(query, links=links), link_weight=0), rank_records(corpus(query)), atol=1e-12
    )


def test_a_thread_has_one_voice_its_best_member_and_profits_from_all():
    notes = ["Go module conflict", "checksum mismatch in go.sum", "Go module notes"]
    apart = rank_records(corpus("Go module checksum mismatch", notes))
    joined = rank_records(corpus("Go module checksum mismatch", notes, thread=[7, 7, 8]))
    assert np.isfinite(apart).all()
    assert np.isfinite(joined).tolist() == [False, True, True] or np.isfinite(joined).tolist() == [True, False, True]
    assert joined[:2].max() > joined[2]


def test_bm25_agrees_with_the_formula_on_a_small_case():
    given_corpus = corpus("go", ["go go stop it", "go along", "rust"])
    idf = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    length = given_corpus.length[0]
    expected = idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * length / given_corpus.mean_length))
    assert bm25(given_corpus)[0] == pytest.approx(expected)
    assert bm25(given_corpus)[2] == 0


def test_an_empty_pool_and_a_pool_of_one_are_fine():
    assert rank_records(corpus("go", [])).shape == (0,)
    assert rank_records(corpus("Go modules", ["Go modules"])).tolist() == [0.0]


def test_filling_passes_over_what_does_not_fit_and_what_has_no_score():
    assert fill([30, 80, 20, 10], [1.0, 3.0, 2.0, -np.inf], 60) == [2, 0]
    assert fill([5, 5, 5], [1.0, 1.0, 1.0], 10) == [0, 1]
    assert fill([], [], 10) == []
    with pytest.raises(ValueError, match="lines"):
        fill([1], [], 10)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_scores_do_not_depend_on_the_order_of_the_records(data):
    size = data.draw(st.integers(1, 12))
    unit = st.floats(0, 1, width=16)
    column = hnp.arrays(float, size, elements=unit)
    tf = data.draw(hnp.arrays(float, (size, 3), elements=st.integers(0, 3).map(float)))
    ids = np.arange(size)
    one = Corpus(
        ids, ids, tf, 1 + tf.sum(axis=1), (tf > 0).sum(axis=0).astype(float), size, 3.0,
        data.draw(column), data.draw(column), data.draw(hnp.arrays(np.int64, size, elements=st.integers(0, 4))),
    )  # fmt: skip
    shuffled = np.array(data.draw(st.permutations(range(size))))
    other = Corpus(
        one.cards[shuffled], one.owners[shuffled], one.tf[shuffled], one.length[shuffled], one.df, size, 3.0,
        one.similarity[shuffled], one.link_cosine[shuffled], one.thread[shuffled],
    )  # fmt: skip
    scores = rank_records(one)
    np.testing.assert_allclose(rank_records(other), scores[shuffled], atol=1e-9)
    heads = one.thread[np.isfinite(scores)]
    assert len(set(heads.tolist())) == len(heads)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.floats(-5, 5)), max_size=20), st.integers(0, 200))
def test_filling_keeps_the_budget_and_the_order(lines, budget):
    costs, scores = [cost for cost, _ in lines], [score for _, score in lines]
    taken = fill(costs, scores, budget)
    assert sum(costs[row] for row in taken) <= budget
    order = best_first(np.arange(len(scores)), np.array(scores))
    assert taken == [row for row in order if row in set(taken)]
    left = budget - sum(costs[row] for row in taken)
    assert all(costs[row] > left for row in set(order) - set(taken))


def test_words_that_one_principal_alone_uses_bring_it_no_nearer_to_the_question():
    notes = [
        "What helped when the export hangs? The export hangs.",
        "The export hangs on Mondays.",
        "Export hangs, again.",
    ]
    laid = corpus("What helped when the export hangs?", notes)
    alone, near, also = shares(laid, [0, 1, 2], [7, 8, 9])
    assert alone == near == also > 0
    assert shares(laid, [0, 1, 2], [7, 7, 9])[0] == near
    assert shares(laid, [0], [7]).tolist() == [0.0]
    assert shares(laid, [], []).tolist() == []
