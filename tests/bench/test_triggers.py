"""What the trigger benchmark counts, over a stream of a few notes."""

from __future__ import annotations

import asyncio
import dataclasses

import numpy as np
import pytest

from collab_layer.bench import facts
from collab_layer.bench.chatter import small_talk
from collab_layer.bench.recurring import LANGUAGES, Stream, stream
from collab_layer.bench.summarizer import summarize
from collab_layer.bench.triggers import Measured, follow, tells
from collab_layer.stages.tokens import terms
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction


@pytest.fixture(scope="module")
def few() -> Stream:
    """Two facts, one in each language, among notes of noise."""
    of, rng = stream(3, "tune"), np.random.default_rng(3)
    planted = [of.facts[0], of.facts[-1]]
    said = [text for pair in zip(*(fact.wordings[:6] for fact in planted), strict=True) for text in pair]
    noise = [[small_talk(rng, one) for one in LANGUAGES * 5] for _ in said]
    texts = [text for part, fact in zip(noise, said, strict=True) for text in (*part, fact)]
    owners = [f"agent:o{n}" for n in range(6)]
    notes = [Interaction(actor=Entity.parse(owners[n % 6]), verb="noted", text=text) for n, text in enumerate(texts)]
    return dataclasses.replace(of, notes=notes, owners=owners, private=of.private[:4], facts=planted)


def run(of: Stream, trigger: str) -> Measured:
    return asyncio.run(follow(of, trigger))


# -- the stream ---------------------------------------------------------------------------


def test_a_seed_makes_the_same_stream_and_another_makes_another():
    one, same, other = stream(1, "test"), stream(1, "test"), stream(2, "test")
    assert one == same
    assert [note.text for note in one.notes] != [note.text for note in other.notes]


def test_nine_of_ten_notes_are_noise_and_no_fact_is_worded_twice_alike():
    of = stream(1, "test")
    said = [text for fact in of.facts for text in fact.wordings]
    assert len(said) == len(set(said))
    assert len(said) / len(of.notes) == pytest.approx(0.1, abs=0.005)
    assert {fact.language for fact in of.facts} == {"en", "ru"}
    assert all(6 <= len(fact.wordings) <= 8 for fact in of.facts)


def test_several_owners_note_each_fact():
    of = stream(1, "test")
    for fact in of.facts:
        assert len({str(note.actor) for note in of.notes if note.text in fact.wordings}) >= 3


def test_the_halves_have_no_fact_in_common():
    for language in LANGUAGES:
        for parts in (facts.THINGS, facts.TROUBLES, facts.REMEDIES):
            assert not set(parts["tune", language]) & set(parts["test", language])


# -- what counts --------------------------------------------------------------------------


def test_a_text_tells_the_fact_whose_words_it_has():
    of = stream(1, "test")
    one, other = of.facts[0], of.facts[1]
    assert tells(f"Noted often: {one.wordings[0]}", one, of.facts)
    assert not tells(f"Noted often: {one.wordings[0]}", other, of.facts)
    assert not tells(" ".join(terms(one.wordings[0])[:3]), one, of.facts)


def test_the_stand_in_says_what_the_shown_events_have_in_common():
    data = "\n".join(
        [
            'e1 "The gate squeaks"',
            'e2 about r2: "The VPN drops, renew the certificate"',
            'e3 "Again the VPN drops; renew the certificate -> it works"',
            "r1 the one whose events these are; may be told of e1 e2 e3",
            "r2 what events are about; may be told of e1",
        ]
    )
    first, second = summarize(data)
    assert first["text"] == "Noted often: The VPN drops, renew the certificate"
    assert first["events"] == ["e2", "e3"]
    assert second["text"] == "Noted often: The gate squeaks"


def test_never_asking_finds_nothing(few):
    measured = run(few, "nightly")
    assert (measured.calls, measured.reached) == (0, 0)


def test_asking_about_everything_finds_everything_at_a_call_each(few):
    measured = run(few, "eager")
    assert measured.reached == measured.facts
    assert 0.9 * measured.notes <= measured.calls <= measured.notes, "the first have nobody near them to be told"
    assert all(row.ok is None for row in measured.rows("triggers"))


def test_asking_about_what_recurs_finds_it_for_few_calls(few):
    measured = run(few, "recurrence")
    assert measured.reached == measured.facts
    assert measured.calls <= 0.13 * measured.notes
    rows = {row.name: row for row in measured.rows("triggers")}
    assert rows["triggers.recurrence.reached"].ok
    assert rows["triggers.recurrence.calls_per_note"].bar == "<= 0.13"
    assert rows["triggers.recurrence.input_tokens_per_1000"].value > 0
