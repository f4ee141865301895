"""One tokenizer for English and Russian, used by search, links, lessons and vectors.

In:   any text.
Out:  stems with repeats, sentences, folded names, integer keys of terms.
Pure: the same text gives the same terms in every process and on every database.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain, islice
from typing import Any

import Stemmer

MAX_TERMS = 4_000
"""Terms kept of one text."""
MAX_CHARS = 100_000
"""Characters read of one text."""
_MAX_TOKEN = 64

_PART = r"[^\W_]+(?:['’][^\W_]+)*"
WORD = re.compile(rf"{_PART}(?:[._:\-]{{1,2}}{_PART})*(?:\+\+|\#(?!\w))?")
"""A word or an identifier: `go.mod`, `ERR_CONN`, `v1.2.3`, `foo-bar`, `don't`, `C++`."""

_PLAIN = re.compile(rf"{_PART}(?:\+\+|\#(?!\w))?")
_SPLIT = re.compile(r"([._:\-]+)")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MARKS = re.compile("[\u0300-\u036f\u00ad\u200b-\u200f\u2060\ufeff]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_END = re.compile(
    r"\s(?:"  # first of all a space, so that nothing else is looked at between two words
    r"(?:(?<=[.!?…]\s)|(?<=[.!?…][\"'»”)]\s))\s*(?=[\"'«“(]*[^\Wa-zа-яё_])"
    r"|(?:(?<=\n)|\s*\n)\s*)"
)
_STOPS = ".!?…\n"
"""Without one of these a text is one sentence."""
_RUN = re.compile(r"\S+")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|mr|mrs|ms|dr|т\.е|т\.д|т\.п|г|ул|им|см|рис|др|[a-zа-я])\.$", re.I)
_ENDS = ".,;:!"
_SMALL_NUMBER = re.compile(r"v?\d{1,2}")

_ENGLISH = """
    a about after again all also am an and any are aren't as at be because been before being below between both
    but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from
    further had hadn't has hasn't have haven't having he her here hers herself him himself his how i i'd i'll i'm
    i've if in into is isn't it it's its itself just let's me more most my myself nor not now of off on once only or
    other our ours ourselves out over own please same she should shouldn't so some such than that that's the their
    theirs them themselves then there there's these they they're this those through to too under until up upon us very
    was wasn't we we're were weren't what when where which while who whom why will with won't would wouldn't yes you
    you're your yours yourself
"""

_RUSSIAN = """
    а без более больше будет будто бы был была были было быть в вам вас ведь весь вдруг во вот впрочем все всегда
    всего всех всю вы где да даже два для до другой его ее ей ему если есть еще ж же за здесь и из или им иногда их к
    как какая какие какой когда конечно кто куда ли лучше между меня мне много может можно мой моя мы на над надо
    наконец нас наш не него нее ней нельзя нет ни нибудь никогда ним них ничего но ну о об однако он она они оно опять
    от очень перед по под после потом потому почти при про раз разве с сам себе себя со совсем так такой там тебе
    тебя тем теперь то тогда того тоже только том тот три тут ты у уж уже хоть хотя чего чем через что чтобы чуть эта
    эти это этого этой этом этот эту я свой свою своей свои также нужно который которая которые которое
    которого которой которых
"""
STOP = frozenset(f"{_ENGLISH} {_RUSSIAN}".split())
"""English and Russian words that say nothing about the subject."""

_LOCK = threading.Lock()  # the stemmers keep the word they work on as state


def _stemmer(language: str) -> Callable[[str], str]:
    made: Any = Stemmer
    return made.Stemmer(language, 0).stemWord


_ENGLISH_STEM, _RUSSIAN_STEM = _stemmer("english"), _stemmer("russian")


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of one folded word; its script says which language."""
    if word.isascii():
        if "'" not in word and not word.isalpha():
            return word  # with digits, as in `utf8`
        with _LOCK:
            return _ENGLISH_STEM(word).replace("'", "")
    if _CYRILLIC.search(word):
        with _LOCK:
            return _RUSSIAN_STEM(word)
    return word


def normal(text: str) -> str:
    """The first `MAX_CHARS` characters in NFKC, without accents left over and invisible characters; case kept."""
    text = text[:MAX_CHARS]
    return text if text.isascii() else _MARKS.sub("", unicodedata.normalize("NFKC", text)).replace("’", "'")


def lower(text: str) -> str:
    """Case folded, `ё` as `е`."""
    return text.casefold().replace("ё", "е")


def _of_token(token: str) -> tuple[str, ...]:
    """Terms of one token: its stem, or the whole identifier and the stems of its parts."""
    token = token[:_MAX_TOKEN]
    pieces = _SPLIT.split(token)  # parts and, at odd places, what joins them
    parts = [lower(part) for piece in pieces[::2] for part in _CAMEL.split(piece) if part]
    if len(parts) == 1:
        return () if parts[0] in STOP else (stem(parts[0]),)
    whole = "".join(piece if index % 2 else stem(lower(piece)) for index, piece in enumerate(pieces))
    return (whole, *(stem(part) for part in parts if _says(part)))


def by_chunk(of: Callable[[str], tuple[str, ...]], text: str) -> Iterator[tuple[str, ...]]:
    """What a kept function says of each run of characters between two spaces; of a long one it is not kept."""
    chunks = text.split()
    if max(map(len, chunks), default=0) <= _MAX_TOKEN:
        return map(of, chunks)
    return (_kept_if_short(of, chunk) for chunk in chunks)


def _kept_if_short(of: Callable[[str], tuple[str, ...]], chunk: str) -> tuple[str, ...]:
    return of(chunk) if len(chunk) <= _MAX_TOKEN else inspect.unwrap(of)(chunk)


def letters(chunk: str) -> str:
    """The word of a run that is one word of letters, with or without an end of a clause; empty for any other run."""
    word = chunk.rstrip(_ENDS)
    return word if word.isalpha() else ""


@lru_cache(maxsize=1 << 16)
def _of_chunk(chunk: str) -> tuple[str, ...]:
    """Terms of a run without a space: none reaches over one, and most runs come again and again."""
    word = letters(chunk)
    if word.islower() or word.istitle():  # nothing to take apart, as in most runs
        low = lower(word[:_MAX_TOKEN])
        return () if low in STOP else (stem(low),)
    return tuple(chain.from_iterable(map(_of_token, WORD.findall(chunk))))


def _says(part: str) -> bool:
    return len(part) > 1 and part not in STOP and not _SMALL_NUMBER.fullmatch(part)


def terms(text: str, *, limit: int = MAX_TERMS) -> list[str]:
    """Stems of the content words, in order, with repeats; stop words are left out.

    An identifier gives itself and its parts: `go.mod` gives `go.mod`, `go`, `mod`, and
    `ModuleNotFoundError` gives also `modul`, `found`, `error`.

    Args:
        text: Any text; only the first 100,000 characters are read.
        limit: The most terms returned.
    """
    return list(islice(chain.from_iterable(by_chunk(_of_chunk, normal(text))), limit))


def says(text: str, enough: int, *, limit: int) -> int:
    """How many different terms are among the first `limit` of a text; read hardly further than to `enough` of them."""
    found: set[str] = set()
    for run in _RUN.finditer(normal(text)):
        mine = _kept_if_short(_of_chunk, run.group())[:limit]
        found.update(mine)
        limit -= len(mine)
        if len(found) >= enough or not limit:
            break
    return len(found)


def apart(text: str) -> list[str]:
    """Plain words of an already `normal` text; identifiers are split into parts."""
    return _PLAIN.findall(text)


def words(text: str) -> Iterator[tuple[str, int, int]]:
    """The same with their places."""
    for match in _PLAIN.finditer(text):
        yield match.group(), match.start(), match.end()


@lru_cache(maxsize=1 << 16)
def fold_word(word: str) -> str:
    """One word of a name: case folded, apostrophes dropped; a Cyrillic word of 4 letters or more stemmed."""
    low = lower(word).replace("'", "")
    return stem(low) if len(low) > 3 and _CYRILLIC.search(low) else low


@lru_cache(maxsize=1 << 16)
def fold(name: str) -> str:
    """A name in the form in which names are compared.

    Case, `ё`, apostrophes and punctuation do not count (`go.mod`, `Go Mod`, `go-mod` are one
    name). Cyrillic words lose their case ending, so that `Дюну` finds `Дюна`; English words
    keep theirs, since `Alien` and `Aliens` are two films. A name without any letter or digit
    stays as it is.
    """
    text = normal(name)
    return " ".join(map(fold_word, apart(text))) or lower(text.strip())


def sentences(text: str) -> Iterator[str]:
    """Sentences and lines, stripped, in order; a full stop after an abbreviation does not end one.

    Each is looked for when it is asked for.
    """
    last = ""
    for piece in _pieces(text[:MAX_CHARS]):
        if last.endswith(".") and _ABBREVIATION.search(last[-6:]):
            last = f"{last} {piece}"
            continue
        if last:
            yield last
        last = piece
    if last:
        yield last


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text) if any(map(text.__contains__, _STOPS)) else ():
        if piece := text[start : end.start()].strip():
            yield piece
        start = end.end()
    if piece := text[start:].strip():
        yield piece


@lru_cache(maxsize=1 << 16)
def hashed(term: str) -> int:
    """A key for a term, in [0, 2**63): the first 63 bits of its BLAKE2b digest."""
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "big") >> 1


__all__ = [
    "MAX_CHARS",
    "MAX_TERMS",
    "STOP",
    "WORD",
    "by_chunk",
    "apart",
    "fold",
    "fold_word",
    "hashed",
    "letters",
    "lower",
    "normal",
    "says",
    "sentences",
    "stem",
    "terms",
    "words",
]
