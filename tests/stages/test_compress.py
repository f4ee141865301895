from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.stages.compress import compress, negated, repeats
from collab_layer.stages.tokens import terms
from collab_layer.types.tokens import estimate_tokens

TICKETS = [
    "Hello there. The Go build broke on a stale checksum in go.sum. Running go mod tidy fixed it. Thanks a lot!",
    "Hello there! The Go build broke on a stale checksum in `go.sum`. Running go mod tidy fixed it; thanks a lot.",
    "Good morning. Checksums of Go modules differed between two machines. We pinned the proxy. Best regards.",
    "The customer could not log in with SSO. The certificate had expired. We rotated it and told the customer.",
    "Lunch is at noon. The canteen has soup.",
]


def cost(kept: list[tuple[int, str]]) -> int:
    return sum(estimate_tokens(text) for _, text in kept)


def test_a_text_that_only_repeats_another_is_dropped_and_the_source_is_known():
    kept = compress(TICKETS, budget_tokens=400)
    assert [at for at, _ in kept] == [0, 2, 3, 4]
    assert repeats(TICKETS) == {1: 0}


def test_within_a_small_budget_the_telling_sentences_stay():
    kept = dict(compress(TICKETS, budget_tokens=40))
    said = " ".join(kept.values())
    assert cost(list(kept.items())) <= 40
    assert "checksum" in said
    assert "Hello" not in said
    assert "regards" not in said


def test_a_query_decides_what_matters():
    assert "certificate" in " ".join(
        text for _, text in compress(TICKETS, budget_tokens=14, query="expired certificate")
    )
    assert "soup" in " ".join(text for _, text in compress(TICKETS, budget_tokens=14, query="soup in the canteen"))


def test_weight_decides_between_equals_and_what_stands_beside_is_paid_for():
    texts = ["Alpha beats gamma today.", "Delta beats epsilon today."]
    assert [at for at, _ in compress(texts, budget_tokens=7, weight=[1.0, 5.0])] == [1]
    assert [at for at, _ in compress(texts, budget_tokens=14, beside=[3, 3])] == [0]


def test_sentences_left_out_leave_a_mark():
    text = "The build broke on Monday. Yes. The proxy served a stale checksum for the module."
    ((_, said),) = compress([text], budget_tokens=60)
    assert said == "The build broke on Monday. … The proxy served a stale checksum for the module."


def test_opposites_are_no_repetition():
    texts = [
        "We should not restart the proxy after the upgrade of the cluster.",
        "We should restart the proxy after the upgrade of the cluster.",
        "Кэш нельзя сбрасывать во время ночной сборки на общем сервере.",
        "Кэш можно сбрасывать во время ночной сборки на общем сервере.",
        "Alice loves the film Dune.",
        "Alice hates the film Dune.",
    ]
    assert repeats(texts) == {}
    assert [negated(text) for text in texts] == [True, False, True, False, False, False]


def test_russian_inflections_count_as_the_same_words():
    texts = ["Сборка сломалась из-за контрольных сумм модулей.", "Сборки сломались из-за контрольной суммы модуля."]
    assert repeats(texts) == {1: 0}
    ((at, said),) = compress(texts, budget_tokens=60, query="контрольная сумма")
    assert (at, said) == (0, texts[0])


@pytest.mark.parametrize("texts", [[], [""], ["", "   "], ["?!"], ["и в на"]])
def test_nothing_to_say_gives_nothing(texts):
    assert compress(texts, budget_tokens=100) == []


def test_a_text_of_one_word_is_kept_whole():
    assert compress(["Dune"], budget_tokens=10) == [(0, "Dune")]


def test_a_limit_below_eight_tokens_is_refused():
    with pytest.raises(ValueError, match="at least 8"):
        compress(["Dune"], budget_tokens=10, per_text=7)


def test_the_same_words_come_out_whatever_the_hash_seed():
    code = f"from collab_layer.stages.compress import compress; print(compress({TICKETS!r}, budget_tokens=50))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert outputs == {f"{compress(TICKETS, budget_tokens=50)}\n"}


def bare(text):
    """Words, and the same without the signs that a shortened line does not end in."""
    found = text.replace("…", " ").split()
    return {*found, *(word.rstrip(" ,;:—–-") for word in found)}


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=120), st.sampled_from(TICKETS)), max_size=8),
    st.integers(0, 120),
    st.integers(8, 60),
    st.one_of(st.none(), st.text(max_size=30)),
)
def test_budgets_hold_and_every_word_was_in_its_source(texts, budget, most, query):
    kept = compress(texts, budget_tokens=budget, per_text=most, query=query)
    assert cost(kept) <= budget
    assert [at for at, _ in kept] == sorted({at for at, _ in kept})
    for at, said in kept:
        assert 0 < estimate_tokens(said) <= most
        assert set(said.replace("…", " ").split()) <= bare(texts[at])
        assert terms(said)
    assert compress(texts, budget_tokens=budget, per_text=most, query=query) == kept
