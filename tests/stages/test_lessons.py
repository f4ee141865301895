from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.stages.lessons import lesson, note, shorten
from collab_layer.types.tokens import estimate_tokens

NOTE = (
    "Hi team! The build broke because go.sum held stale checksums of the internal module and the proxy refused it. "
    + "We looked at many things first. " * 40
)
ЗАПИСКА = (
    "Привет! Сборка упала, потому что в go.sum остались старые контрольные суммы модуля. " + "Смотрели долго. " * 40
)


def test_an_outcome_gives_when_and_did():
    said = lesson(NOTE, outcome="ran go mod tidy", links=["go.sum", "Go modules"])
    assert said.startswith("When the build broke because go.sum")
    assert said.endswith("Did: ran go mod tidy; go.sum, Go modules")


def test_russian_text_gets_russian_labels():
    said = lesson(ЗАПИСКА, outcome="выполнили go mod tidy")
    assert said.startswith("Когда ")
    assert said.endswith("Сделано: выполнили go mod tidy")


def test_without_outcome_the_first_sentence_that_says_something_stands():
    assert lesson(NOTE).startswith("The build broke")
    assert lesson(ЗАПИСКА).startswith("Сборка упала")
    assert lesson("ok") == "ok"


def test_a_telling_verb_is_part_of_what_was_done_and_a_plain_one_is_not():
    assert lesson("Login failed for all users", links=["SSO"], verb="solved").endswith("Did: solved SSO")
    assert lesson("Login failed for all users", links=["SSO"], verb="remembered").endswith("Did: SSO")


def test_a_task_that_already_says_when_does_not_say_it_twice():
    assert lesson("When login fails for SSO users", outcome="reset it").startswith("When login fails")


def test_a_link_in_the_outcome_is_not_repeated():
    assert lesson("Build broke on every machine", outcome="deleted go.sum", links=["go.sum"]).endswith(
        "Did: deleted go.sum"
    )


def test_nothing_said_gives_nothing():
    assert lesson("...") == lesson("") == ""
    assert lesson("", outcome="restarted") == "Did: restarted"


def test_a_budget_too_small_for_words_is_refused():
    with pytest.raises(ValueError, match="8"):
        lesson("text", max_tokens=7)


def test_a_word_longer_than_the_budget_is_left_out_whole():
    assert shorten("x" * 500 + " short words", 10) == "short words…"


texts = st.text(st.sampled_from("ab cфы.\n«!?é1-"), max_size=300)


@settings(max_examples=150, deadline=None)
@given(texts, st.none() | texts, st.lists(texts, max_size=3), st.none() | st.just("solved"), st.integers(8, 60))
def test_a_lesson_is_one_line_within_budget_of_whole_words(text, outcome, links, verb, budget):
    said = lesson(text, outcome=outcome, links=links, verb=verb, max_tokens=budget)
    assert estimate_tokens(said) <= budget
    assert said.splitlines() in ([said], [])
    given_words = " ".join([text, outcome or "", *links, "When Did: Когда Сделано: solved"]).split()
    strip = " .;:,!…—–-?"
    allowed = {part.strip(strip).casefold() for word in given_words for part in (word,)}
    assert all(word.strip(strip).casefold() in allowed for word in said.split())


def test_a_plain_note_of_a_few_sentences_stays_whole():
    text = "Budget approved. It is 221,000 USD, and it replaces 236,000 USD. Finance signed."
    assert note(text) == note(text.replace(". ", ".\n\n")) == text


def test_a_long_note_ends_with_its_last_whole_sentence_that_fits():
    said = note(NOTE, max_tokens=64)
    assert estimate_tokens(said) <= 64
    assert said.startswith("The build broke because go.sum")
    assert said.endswith(".")


def test_a_note_without_a_word_gives_nothing():
    assert note("") == note("… !!") == ""
