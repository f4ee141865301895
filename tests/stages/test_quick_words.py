"""What is looked up by chunks, by bits, by places and word by word is what the plain way gives."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.bench.order_words import HONEST, ORDERS
from collab_layer.stages import alike, orders, tokens
from collab_layer.stages.lessons import shorten
from collab_layer.stages.repeats import REPEATED, repeats_last
from collab_layer.types.tokens import estimate_tokens

SAID = """
    A a an plan the Just ok 1.2.3 10:30 -5 — … ... ! ? != e.g. т.е. г. v2 go.mod foo-bar Foo_Bar don't don’t C++ C#x
    it's ModuleNotFoundError été e\u0301t Ёлка ёлки сборка ' " « » “quoted.” (x) Next next После . : ; ,
"""
PIECES = [*SAID.split(), "\u200b", "\u00ad", "\n", "\r\n", "\t", ".\n", "x" + "y" * 70]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), max_size=24).flatmap(
    lambda found: st.sampled_from([" ", "", "  ", "\n"]).map(lambda joint: joint.join(found))
)


@settings(max_examples=400, deadline=None)
@given(texts, st.integers(0, 30))
def test_terms_of_chunks_are_those_of_the_text(text, limit):
    found = [term for match in tokens.WORD.finditer(tokens.normal(text)) for term in tokens._of_token(match.group())]
    assert tokens.terms(text, limit=limit) == found[:limit]
    assert tokens.says(text, 1000, limit=1000) == len(set(found[:1000]))


@settings(max_examples=400, deadline=None)
@given(texts)
def test_sentences_end_where_they_did(text):
    end = re.compile(r"(?:(?<=[.!?…])|(?<=[.!?…][\"'»”)]))\s+(?=[\"'«“(]*[^\Wa-zа-яё_])|\s*\n\s*")
    found: list[str] = []
    for piece in map(str.strip, end.split(text)):
        if found and piece and tokens._ABBREVIATION.search(found[-1][-6:]):
            found[-1] = f"{found[-1]} {piece}"
        elif piece:
            found.append(piece)
    assert list(tokens.sentences(text)) == found


@settings(max_examples=400, deadline=None)
@given(texts)
def test_words_of_chunks_are_those_of_the_text(text):
    found: list[str] = []
    for place, token in enumerate(alike._TOKEN.findall(tokens.normal(text))):
        word = tokens.lower(token)
        if word not in alike._FILLER or (token == "A" and place):
            found.append(tokens.stem(word) if word[0].isalpha() else word)
    assert alike.words(text) == tuple(found)


@settings(max_examples=400, deadline=None)
@given(texts, st.integers(1, 30))
def test_a_text_is_cut_where_its_words_counted_one_by_one_say(text, most):
    line = " ".join(text.split())
    whole = room = 4 * most - 4
    kept: list[str] = []
    for word in line.split(" "):
        cost = sum(1 if char < "\x80" else 2 for char in word) + bool(kept)
        if whole >= cost > room:
            break
        if cost <= room:
            kept.append(word)
            room -= cost
    cut = f"{' '.join(kept).rstrip(' ,;:—–-')}…" if kept else ""
    assert shorten(text, most) == (line if estimate_tokens(line) <= most else cut)


REPEATING = st.lists(st.sampled_from(["one", "two", "three", "four", "5", "6", "seven"])).map(" ".join)
lines = st.lists(st.tuples(REPEATING, st.sampled_from([None, "", "done"])), max_size=80)


@settings(max_examples=200, deadline=None)
@given(lines)
def test_lines_repeat_by_bits_as_by_sets(lines):
    new: list[int] = []
    kept: list[tuple[frozenset[str], tuple[str, ...]]] = []
    for place, (text, ending) in enumerate(lines[:64]):
        here, end = frozenset(alike.words(text)), alike.words(ending or "")
        if not any(
            end == other_end
            and len(here & other) >= REPEATED * len(here | other)
            and not any(word[0].isdigit() for word in here ^ other)
            for other, other_end in kept
        ):
            new.append(place)
            kept.append((here, end))
    assert list(repeats_last(lines)) == [*new, *(at for at in range(len(lines)) if at not in new)]


OURS = [line for lines in ORDERS.values() for line in lines] + list(HONEST)


@pytest.mark.parametrize("seed", range(20))
def test_what_tells_of_no_order_as_a_whole_has_no_sentence_that_does(seed):
    chance = random.Random(seed)
    for _ in range(20):
        text = chance.choice([" ", "\n", "… ", "e.g.\n"]).join(chance.sample(OURS, 3))
        pieces = [piece for one in tokens.sentences(text) for piece in orders._STOP.split(one)]
        telling = [piece for piece in pieces if any(map(orders._tells, orders._readings(piece)))]
        assert orders._shown(text) == tuple(filter(None, map(orders.shown_by, telling)))


@pytest.mark.parametrize(
    "word", ["assistant", "robots", "bots", "mais", "ai", "monkey", "keys", "each new answer", "бота", "робот", "sea"]
)
def test_a_word_tells_whole_or_as_a_beginning(word):
    assert orders._tells(f"so {word} so") == (word not in ("robots", "mais", "monkey", "робот", "sea"))
