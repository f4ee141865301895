from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.stages.asked import ranking
from collab_layer.stages.asked.question import Question
from collab_layer.stages.asked.ranking import Choice, Scored
from collab_layer.types.facet import Facet
from collab_layer.types.tokens import estimate_tokens

from .replies import HOSTILE, JSON, NONCE, assert_bounded, rows, unquoted  # isort: skip

CHOICES = [
    Choice("Solaris", "a slow film about memory", 0.5),
    Choice("Saw", None, 0.1),
    Choice("Moon", "a lonely man in space", 0.9),
]
FACETS = [
    Facet(id="d-real-1", text="Slow science fiction about memory", confidence=0.8, contributors=5),
    Facet(id="d-real-2", text="Little patience for horror", confidence=0.25, contributors=1),
]


def ask(choices: list[Choice] | None = None, facets: list[Facet] | None = None, **options: Any) -> Question[int]:
    wanted: dict[str, Any] = {"instruction": None, "nonce": NONCE, **options}
    own = wanted.pop("own", ["Arrival", "Her"])
    return ranking.ask(CHOICES if choices is None else choices, FACETS if facets is None else facets, own, **wanted)


def read(question: Question[int], reply: Any) -> tuple[dict[int, Scored], int]:
    return ranking.read(question.reply.model_validate(reply), question)


def row(id_: Any, score: Any = 50, why: Any = "", facets: Any = ()) -> dict[str, Any]:
    return {"id": id_, "score": score, "why": why, "facets": facets}


ALL = [row("c1"), row("c2"), row("c3")]


def test_candidates_stand_in_the_order_of_the_rules_under_aliases():
    question = ask(instruction="something quiet")
    assert question.prompt.data == "\n".join(
        [
            f"<data-{NONCE}>",
            'request: "something quiet"',
            "own:",
            '"Arrival"',
            '"Her"',
            "facets:",
            'e1 (0.8) "Slow science fiction about memory"',
            'e2 (0.2) "Little patience for horror"',
            "candidates:",
            'c1 "Moon": "a lonely man in space"',
            'c2 "Solaris": "a slow film about memory"',
            'c3 "Saw"',
            f"</data-{NONCE}>",
        ]
    )
    assert dict(question.shown) == {"c1": 2, "c2": 0, "c3": 1}
    assert "d-real" not in str(question.prompt)
    assert "quiet" not in question.prompt.instructions


def test_the_schema_closes_candidates_facets_and_scores():
    scores = assert_bounded(ask().reply)["properties"]["scores"]
    assert (scores["minItems"], scores["maxItems"]) == (3, 3)
    about = scores["items"]["properties"]
    assert about["id"]["enum"] == ["c1", "c2", "c3"]
    assert about["facets"]["items"]["enum"] == ["e1", "e2"]
    assert (about["score"]["minimum"], about["score"]["maximum"]) == (0, 100)
    one = assert_bounded(ranking.ask_one(CHOICES[0], FACETS, [], instruction=None, nonce=NONCE).reply)["properties"]
    assert one["score"]["maximum"] == 9


def test_that_no_facets_are_known_is_said_plainly():
    for question in (ask(facets=[]), ranking.ask_one(CHOICES[0], [], [], instruction=None, nonce=NONCE)):
        assert "no facets are known" in question.prompt.data
        assert "No facets are known" in question.prompt.instructions
        assert "nothing of its own is known" in question.prompt.data or "Arrival" in question.prompt.data
    assert (
        assert_bounded(ask(facets=[]).reply)["properties"]["scores"]["items"]["properties"]["facets"]["maxItems"] == 0
    )


def test_scores_reasons_and_citations_come_back_under_real_ids():
    reply = {"scores": [row("c2", 90, "slow and about memory", ["e1"]), row("c1", 60), row("c3", 0, "horror", ["e2"])]}
    scored, repaired = read(ask(), reply)
    assert scored == {
        0: Scored(0.9, "slow and about memory", ("d-real-1",)),
        2: Scored(0.6, "", ()),
        1: Scored(0.0, "horror", ("d-real-2",)),
    }
    assert repaired == 0


@pytest.mark.parametrize("reply", [{}, {"scores": None}, {"scores": []}, {"scores": [row("c9"), row("Moon")]}])
def test_empty_and_out_of_list_replies_give_nothing(reply):
    scored, repaired = read(ask(), reply)
    assert scored == {}
    assert repaired == 3 + len(reply.get("scores") or [])


@pytest.mark.parametrize(
    ("changed", "score", "count"),
    [
        (row("c1", "70"), 0.7, 0),
        (row("C1", 70.0), 0.7, 0),
        (row("[c1]", 70), 0.7, 0),
        (row("c1", 1000), 1.0, 1),
        (row("c1", -5), 0.0, 1),
        (row("c1", 70, "see https://evil.example"), 0.7, 1),
        (row("c1", 70, HOSTILE[0]), 0.7, 1),
        (row("c1", 70, HOSTILE[1]), 0.7, 1),
        (row("c1", 70, "words that were nowhere shown"), 0.7, 1),
        (row("c1", 70, "", ["e9", "d-real-1"]), 0.7, 2),
        (row("c1", 70, "", ["e1", "e1"]), 0.7, 1),
        (row("c1", 70, None, None), 0.7, 0),
    ],
)
def test_what_can_be_repaired_is_repaired_and_counted(changed, score, count):
    scored, repaired = read(ask(), {"scores": [changed, *ALL[1:]]})
    assert scored[2].score == pytest.approx(score)
    assert scored[2].rationale == ""
    assert repaired == count
    assert len(scored) == 3


@pytest.mark.parametrize("score", [None, "NaN", float("nan"), float("inf"), "-inf", "high", [], True, 10**400])
def test_a_score_that_is_no_number_leaves_the_candidate_to_the_rules(score):
    scored, repaired = read(ask(), {"scores": [row("c1", score), *ALL[1:]]})
    assert (set(scored), repaired) == ({0, 1}, 1)


def test_of_duplicates_the_first_is_kept_and_missing_ones_are_counted():
    scored, repaired = read(ask(), {"scores": [row("c1", 10), row("c1", 90), row("c2", 5)]})
    assert (scored[2].score, repaired) == (0.1, 2)
    assert set(scored) == {0, 2}


def test_a_reason_without_ids_is_kept():
    scored, repaired = read(ask(), {"scores": [row("c1", 10, "slow science fiction [e1]"), *ALL[1:]]})
    assert (scored[2].rationale, repaired) == ("slow science fiction", 1)


def test_a_hundred_kilobytes_are_read():
    reply = {"scores": [row("c1", 10, "slow " * 1_000, ["e1"] * 100)] * 30}
    scored, _ = read(ask(), reply)
    assert set(scored) == {2}
    assert estimate_tokens(scored[2].rationale) <= 40


@pytest.mark.parametrize("hostile", HOSTILE)
def test_injection_reaches_no_model(hostile):
    choices = [*CHOICES, Choice(hostile, None, 9.0), Choice("Her", hostile, 8.0)]
    facets = [*FACETS, Facet(id="d-3", text=hostile, confidence=0.9, contributors=3)]
    question = ask(choices, facets, own=[hostile, "Arrival"], instruction=hostile)
    assert hostile not in str(question.prompt)
    assert question.prompt.data.count(NONCE) == 2
    assert set(question.shown.values()) == {0, 1, 2, 4}
    assert "e3" not in question.prompt.data
    assert "request:" not in question.prompt.data
    assert ranking.ask_one(choices[3], facets, [hostile], instruction=hostile, nonce=NONCE).shown == {}


def test_no_foreign_word_is_in_the_instructions_or_outside_of_quotation_marks():
    canary = 'canary "words"\nSystem report'
    facet = Facet(id="d-9", text=canary, confidence=0.4, contributors=2)
    one = ranking.ask_one(Choice(canary, canary, 1.0), [facet], [canary], instruction=canary, nonce=NONCE)
    for question in (ask([Choice(canary, canary, 1.0)], [facet], own=[canary], instruction=canary), one):
        assert question.prompt.data.count("canary") >= 4
        assert "canary" not in question.prompt.instructions
        assert "canary" not in unquoted(question.prompt.data)


def test_names_of_all_candidates_fit_and_what_is_known_of_them_as_far_as_it_does():
    facets = [
        FACETS[0].model_copy(update={"id": f"d{n}", "text": f"Facet number {n} " + "long words " * 20})
        for n in range(20)
    ]
    for count in (10, 20, 100):
        choices = [Choice(f"Candidate number {n}", "What is known of it. " * 40, float(-n)) for n in range(count)]
        question = ask(choices, facets, own=["Own thing " * 20] * 30, instruction="Wanted " * 200)
        assert len(question.shown) == count
        described = estimate_tokens(str(question.reply.model_json_schema()))
        assert question.prompt.tokens + described <= 800 + 24 * max(0, count - 10) + 60
        assert question.prompt.max_tokens > 40 * count


def test_priors_that_are_no_numbers_count_lowest():
    choices = [Choice("A1", None, float("nan")), Choice("B1", None, float("-inf")), Choice("C1", None, -3.0)]
    assert list(ask(choices).shown.values()) == [2, 0, 1]


def test_nothing_to_rank_is_a_question_without_candidates():
    question = ask([])
    assert question.shown == {}
    assert read(question, {"scores": [row("c1")]}) == ({}, 1)


def test_one_at_a_time_the_score_is_of_nine():
    question = ranking.ask_one(CHOICES[0], FACETS, ["Arrival"], instruction="quiet", nonce=NONCE)
    assert 'c1 "Solaris": "a slow film about memory"' in question.prompt.data

    def one(reply: Any) -> tuple[Scored | None, int]:
        return ranking.read_one(question.reply.model_validate(reply), question)

    assert one({"score": 9, "why": "slow", "facets": ["e1"]}) == (Scored(1.0, "slow", ("d-real-1",)), 0)
    assert one({"score": "3"}) == (Scored(pytest.approx(1 / 3), "", ()), 0)
    assert one({"score": 12}) == (Scored(1.0, "", ()), 1)
    assert one({"score": float("nan")}) == (None, 1)
    assert one({}) == (None, 1)


def test_russian_is_ranked_like_english():
    facet = Facet(id="d-7", text="Медленная фантастика о памяти", confidence=0.6, contributors=3)
    question = ask([Choice("Солярис", "фильм о памяти", 1.0)], [facet], own=["Сталкер"], instruction="что-нибудь тихое")
    scored, repaired = read(question, {"scores": [row("c1", 88, "медленный фильм о памяти", ["e1"])]})
    assert scored == {0: Scored(0.88, "медленный фильм о памяти", ("d-7",))}
    assert repaired == 0


def test_the_same_input_gives_the_same_question():
    assert ask().prompt == ask().prompt
    assert ask().reply.model_json_schema() == ask().reply.model_json_schema()


@settings(max_examples=200, deadline=None)
@given(rows("id", "score", "why", "facets"))
def test_whatever_the_reply_only_known_candidates_and_facets_come_back(reply):
    question = ask()
    scored, repaired = read(question, {"scores": reply})
    assert repaired >= 0
    assert set(scored) <= {0, 1, 2}
    assert repaired >= 3 - len(scored) or len(scored) == 3
    for one in scored.values():
        assert 0 <= one.score <= 1
        assert set(one.cites) <= {"d-real-1", "d-real-2"}
        assert len(set(one.cites)) == len(one.cites)


@settings(max_examples=120, deadline=None)
@given(st.dictionaries(st.sampled_from(["score", "why", "facets", "id"]), JSON))
def test_whatever_the_reply_about_one_the_score_is_in_range(reply):
    question = ranking.ask_one(CHOICES[0], FACETS, [], instruction=None, nonce=NONCE)
    one, repaired = ranking.read_one(question.reply.model_validate(reply), question)
    assert repaired >= 0
    assert one is None or 0 <= one.score <= 1


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_whatever_is_given_the_fence_holds(label, about, own, wanted):
    question = ask(
        [Choice(label, about, 1.0)], [FACETS[0].model_copy(update={"text": own})], own=[own], instruction=wanted
    )
    assert question.prompt.data.count(NONCE) == 2
    assert all(not line.startswith(("<", "system")) for line in question.prompt.data.splitlines()[1:-1])
