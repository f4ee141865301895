"""A stream of notes in which a few facts come up again and again, each time in other words.

In:   a seed, and which half of the facts: `tune` for choosing a setting, `test` for reporting.
Out:  a `Stream`: notes in order, who shares, and the planted facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collab_layer.bench import facts
from collab_layer.bench.chatter import one, small_talk, words
from collab_layer.bench.facts import Half
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction

OWNERS, PRIVATE = 20, 4
"""Owners that share records with everybody, and such that share with nobody."""
FACTS = 6
"""Per language."""
WORDINGS = (6, 8)
"""How often a fact is noted, each time in other words: at least and at most."""
NOISE = 0.9
"""Share of the notes that are noise."""
NEAR_MISS = 0.15
"""Share of the noise that names the things of the facts and says something else about them."""
LANGUAGES = ("en", "ru")


@dataclass(frozen=True, slots=True)
class Fact:
    """Something worth knowing, and the words in which it was noted."""

    language: str
    wordings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stream:
    """Notes of owners that share, in order, among them those of the facts; notes of owners that do not."""

    notes: Sequence[Interaction]
    owners: Sequence[str]
    private: Sequence[Interaction]
    facts: Sequence[Fact]


def stream(seed: int, half: Half) -> Stream:
    """Make one stream; the same seed and half make the same one."""
    rng = np.random.default_rng([seed, ("tune", "test").index(half)])
    planted = [fact for language in LANGUAGES for fact in _facts(rng, half, language)]
    said = [text for fact in planted for text in fact.wordings]
    noise = [_noise(rng, half) for _ in range(round(len(said) * NOISE / (1 - NOISE)))]
    owners = [f"agent:o{n}" for n in range(OWNERS)]
    texts = [*said, *noise]
    order = [int(at) for at in rng.permutation(len(texts))]
    notes = [_note(one(rng, owners), texts[at]) for at in order]
    silent = [_note(f"agent:p{n % PRIVATE}", _noise(rng, half)) for n in range(10 * PRIVATE)]
    return Stream(notes, owners, silent, planted)


def _note(owner: str, text: str) -> Interaction:
    return Interaction(actor=Entity.parse(owner), verb="noted", text=text)


def _facts(rng: np.random.Generator, half: Half, language: str) -> list[Fact]:
    things = rng.permutation(list(facts.THINGS[half, language]))[:FACTS].tolist()
    return [_fact(rng, half, language, words(thing)) for thing in things]


def _fact(rng: np.random.Generator, half: Half, language: str, things: Sequence[str]) -> Fact:
    """The same trouble with the same remedy, worded anew with each note; no frame is used twice in a row."""
    troubles = words(one(rng, facts.TROUBLES[half, language]))
    remedies = words(one(rng, facts.REMEDIES[half, language]))
    frames = [one(rng, facts.FRAMES[language])]
    said: dict[str, None] = {}
    count = int(rng.integers(WORDINGS[0], WORDINGS[1] + 1))
    while len(said) < count:
        frame = one(rng, [other for other in facts.FRAMES[language] if other != frames[-1]])
        parts = {"thing": one(rng, things), "trouble": one(rng, troubles), "remedy": one(rng, remedies)}
        frames.append(frame)
        said[_opened(frame.format(**parts, who=one(rng, facts.WHO[language])))] = None
    return Fact(language, tuple(said))


def _noise(rng: np.random.Generator, half: Half) -> str:
    language = one(rng, LANGUAGES)
    if rng.random() >= NEAR_MISS:
        return small_talk(rng, language)
    thing = one(rng, words(one(rng, facts.THINGS[half, language])))
    who, when = one(rng, facts.WHO[language]), one(rng, facts.WHEN[language])
    return _opened(one(rng, facts.MISSES[language]).format(thing=thing, who=who, when=when))


def _opened(text: str) -> str:
    return text[0].upper() + text[1:]


__all__ = ["Fact", "Stream", "stream"]
