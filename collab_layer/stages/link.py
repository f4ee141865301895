"""Find what a text refers to: names that are known, and topics that the text itself names.

In:   a text; for `known`, a mapping of folded names to entities.
Out:  entities, with the words that stood for them in the text.
Pure: no look-up anywhere else; ties by place in the text.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from collab_layer.stages.tokens import STOP, WORD, apart, fold_word, lower, normal, stem, words
from collab_layer.types.entity import Entity

MAX_TOPICS = 12
MAX_NAMED = 9
"""Topics of a text that may be quotes, identifiers and names; the others are plain words."""
MAX_NAME_WORDS = 12
_MAX_SLUG_WORDS = 6
_MAX_SLUG = 96
_READ = 8_000
_SIZES = range(MAX_NAME_WORDS, 0, -1)

_QUOTED = re.compile(r"«([^«»\n]{2,80})»|“([^“”\n]{2,80})”|„([^„“”\n]{2,80})[“”]|(?<!\w)\"([^\"\n]{2,80})\"(?!\w)")
_PRIVATE = re.compile(r"(?<![\w.+\-])[\w.+\-]{1,64}@[\w.\-]{1,255}|\b[a-z]{2,10}://\S+|\bwww\.\S+", re.I)
_PATH = re.compile(r"(?<![\w.~\-/\\])(?:[A-Za-z]:)?((?:[\w.~\-]*[/\\]){1,20})([\w.\-]+)")
_ROOTED = re.compile(r"(?:[~.]{0,2}|[A-Za-z]:)[/\\]|(?:[^/\\]*[/\\]){2}")
_VERSION = re.compile(r"v?\d+(?:[._:\-]\d+)*(?:[._\-]?(?:a|b|rc|alpha|beta|dev|post)\d*)?", re.I)
_OPAQUE = re.compile(r"[0-9a-f]{8,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=\w*\d{5})\w+", re.I)
_CODE = re.compile(r"[A-Z]{2,12}[_\-]?\d{2,5}(?:-\d{2,5})?|[A-Z]-?\d{2,4}|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_CAMEL = re.compile(r"[A-Z]?[a-z][a-z0-9]*(?:[A-Z]+[a-z0-9]*)+|[A-Z]{2,}[a-z]{2,}\w*")
_DOTTED = re.compile(r"[A-Za-z][\w\-]+(?:\.[A-Za-z][\w\-]*){0,4}\.[A-Za-z]\w+|\w+(?:\+\+|\#)")
_ACRONYM = re.compile(r"[A-ZА-ЯЁ][A-ZА-ЯЁ0-9]{1,7}")
_PLAIN_WORD = re.compile(r"[^\W\d_]{3,}(?:-[^\W\d_]{2,})*")
_GAPS = (" ", "\u00a0")
_SMALL = frozenset(("of", "the", "and", "de", "la", "von", "van", "der"))
_WEAK = """
    use make get need want try thing way new good work find help give take put set see know add change problem issue
    yesterday today contact
    сделать делать использовать хотеть новый хороший работать найти дать взять видеть знать добавить изменить
    проблема вопрос вещь вчера сегодня
"""


@cache
def _weak() -> frozenset[str]:
    return frozenset(stem(word) for word in _WEAK.split())


@lru_cache(maxsize=1 << 16)
def slug(text: str) -> str:
    """Stems of the content words joined by `-`, so that inflections meet; at most 6 words.

    `Go modules` and `Go module` give `go-modul`; `модули Go` and `модулей Go` give `модул-go`.
    An empty string if the text has no letter or digit.
    """
    found = list(map(lower, apart(normal(text))))
    kept = [part for part in found if part not in STOP] or found
    joined = "-".join(stem(part).replace("'", "") for part in kept[:_MAX_SLUG_WORDS])
    return joined[:_MAX_SLUG].strip("-")


class Headed(ABC):
    """Names that tell what they begin with: most words of a text begin none."""

    @abstractmethod
    def sizes(self, head: str) -> Sequence[int]:
        """How many words names with this first word have, folded, the most first; there may be no such name."""


def known(text: str, names: Mapping[str, Entity]) -> list[tuple[Entity, str]]:
    """Known names in a text, the longest match first at each place, each entity once.

    Names of one word need two letters or digits at least; a stop word counts as a name only
    where it is written with a capital inside a sentence.

    Args:
        text: Any text; its first 8,000 characters are read.
        names: `tokens.fold` of a display name to its entity; faster where they are `Headed`.
    """
    if not names:
        return []
    text = normal(text[:_READ])
    folded = _folded(text)
    headed = names if isinstance(names, Headed) else None
    found: dict[Entity, str] = {}
    spans: list[tuple[str, int, int]] = []
    at = 0
    while at < len(folded):
        sizes = _SIZES if headed is None else headed.sizes(folded[at])
        for size in sizes:
            name = folded[at] if size == 1 else " ".join(folded[at : at + size])
            if size <= min(MAX_NAME_WORDS, len(folded) - at) and name in names:
                spans = spans or list(words(text))
                if size > 1 or _usable(text, *spans[at]):
                    found.setdefault(names[name], text[spans[at][1] : spans[at + size - 1][2]])
                    at += size - 1
                    break
        at += 1
    return list(found.items())


@lru_cache(maxsize=1 << 9)
def _folded(text: str) -> tuple[str, ...]:
    """The folded words of a text, kept for a while: it is looked through with the names of several moments."""
    return tuple(map(fold_word, apart(text)))


def _usable(text: str, token: str, start: int, end: int) -> bool:
    if lower(token) in STOP:
        return token[:1].isupper() and len(token) > 1 and not _opens(text, start)
    return end - start > 1


def _opens(text: str, start: int) -> bool:
    """Whether a sentence, line or list item opens at this place."""
    before = text[max(0, start - 8) : start]
    ahead = before.rstrip(" \t\u00a0\"'«“„([*#>-•—–")
    return (not ahead and start <= 8) or ahead[-1:] in tuple(".!?…:;\n")


@dataclass(frozen=True, slots=True)
class _Found:
    """A candidate topic; `rank` 0 is the surest kind."""

    rank: int
    at: int
    surface: str


def topics(text: str, *, limit: int = MAX_TOPICS) -> list[tuple[Entity, str]]:
    """What the text itself names, best first, with the words it used.

    Quoted titles, then identifiers (file names, error codes, snake_case, CamelCase), then names
    (capitalised inside a sentence) and acronyms, then pairs of content words and single words,
    more frequent first. Versions, addresses, long numbers and digests are left out. Two forms of
    one topic in the text count once.

    Args:
        text: Any text; its first 8,000 characters are read.
        limit: The most topics returned.
    """
    text = _PRIVATE.sub(" . ", normal(text[:_READ]))
    without_paths = _without_paths(text)
    said = [(match, _word(match.group())) for match in WORD.finditer(without_paths)]
    identifiers = (_Found(1, match.start(), match.group()) for match, word in said if word.identifies)
    named = sorted(
        (*_quoted(text), *_paths(text), *identifiers, *_proper(text)), key=lambda found: (found.rank, found.at)
    )
    best: dict[str, str] = {}
    _take(best, ((slug(found.surface), found.surface) for found in named), min(MAX_NAMED, limit))
    covered = frozenset(part for key in best for part in key.split("-"))
    _take(best, _plain(without_paths, said, limit - len(best), covered), limit)
    return [(Entity("topic", key), surface) for key, surface in best.items()]


def _take(best: dict[str, str], found: Iterable[tuple[str, str]], limit: int) -> None:
    for key, surface in found:
        if len(best) >= limit:
            return
        if len(key) > 1 and key not in STOP and not key.replace("-", "").isdigit():
            best.setdefault(key, surface)


def _quoted(text: str) -> Iterator[_Found]:
    for match in _QUOTED.finditer(text):
        inside = " ".join(next(group for group in match.groups() if group).split()).strip(" .,;:!?")
        content = apart(inside)
        if 1 <= len(content) <= 8 and any(lower(token) not in STOP for token in content):
            yield _Found(0, match.start(), inside)


def _paths(text: str) -> Iterator[_Found]:
    for match in _PATH.finditer(text) if _may_hold_path(text) else ():
        last = match.group(2).strip(".-")
        if _ROOTED.match(match.group(1)) and len(last) > 2 and not _VERSION.fullmatch(last):
            yield _Found(1, match.start(), last)


def _may_hold_path(text: str) -> bool:
    return "/" in text or "\\" in text


def _without_paths(text: str) -> str:
    if not _may_hold_path(text):
        return text
    return _PATH.sub(lambda match: " . " if _ROOTED.match(match.group(1)) else match.group(), text)


class _Word(NamedTuple):
    """What a word of a text may be a topic as.

    Attributes:
        content: Whether it may be part of one.
        alone: Whether it may be one by itself.
        identifies: Whether it is an identifier.
        key: Its slug.
        stems, every: Stems of its first parts, stop words left out, and of whichever.
    """

    content: bool
    alone: bool
    identifies: bool
    key: str
    stems: tuple[str, ...]
    every: tuple[str, ...]


@lru_cache(maxsize=1 << 15)
def _word(token: str) -> _Word:
    low, plain = lower(token), bool(_PLAIN_WORD.fullmatch(token))
    parts = list(map(lower, apart(normal(token))))
    every = _stems(parts)
    stems = every if STOP.isdisjoint(parts) else _stems(part for part in parts if part not in STOP)
    content = low not in STOP and (plain or token.isalpha())
    return _Word(content, content and plain, _identifier(token), slug(token), stems, every)


def _stems(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(stem(part).replace("'", "") for part in islice(parts, _MAX_SLUG_WORDS))


def _slug_of_two(first: _Word, second: _Word) -> str:
    """The slug of both words with a gap between."""
    kept = (*first.stems, *second.stems) or (*first.every, *second.every)
    return "-".join(kept[:_MAX_SLUG_WORDS])[:_MAX_SLUG].strip("-")


def _identifier(token: str) -> bool:
    if _CODE.fullmatch(token):
        return True
    if _VERSION.fullmatch(token) or _OPAQUE.fullmatch(token):
        return False
    if _CAMEL.fullmatch(token) or _DOTTED.fullmatch(token):
        return True
    return ("_" in token or "::" in token) and any(char.isalpha() for char in token)


def _proper(text: str) -> Iterator[_Found]:
    if text.islower():
        return
    if sum(map(str.isupper, text)) * 2 > sum(map(str.isalpha, text)):
        return  # all in capitals: they say nothing
    for run in _runs(WORD.sub(lambda match: _hidden(match.group()), text)):
        if _opens(text, run[0][1]) and not _ACRONYM.fullmatch(run[0][0]):
            if len(run) > 2 and lower(run[0][0]) not in STOP and run[1][0] not in ("the", "and"):
                yield _Found(3, run[0][1], text[run[0][1] : run[-1][2]])
            run = run[1:]
        while run and (lower(run[0][0]) in STOP or run[0][0] in _SMALL):
            run = run[1:]
        if run:
            yield _Found(2, run[0][1], text[run[0][1] : run[-1][2]])


@lru_cache(maxsize=1 << 16)
def _hidden(token: str) -> str:
    """Small letters in place of identifiers, which are found elsewhere, and of opaque numbers."""
    joined = any(char in "._:" or char.isdigit() for char in token)
    return "x" * len(token) if (joined and not _ACRONYM.fullmatch(token)) or _OPAQUE.fullmatch(token) else token


def _runs(text: str) -> Iterator[list[tuple[str, int, int]]]:
    """Neighbouring capitalised words; up to two of `of`, `the` and the like may stand between."""
    run: list[tuple[str, int, int]] = []
    between: list[tuple[str, int, int]] = []
    for span in words(text):
        last = (between or run)[-1:]
        near = bool(last) and text[last[0][2] : span[1]] in _GAPS and len(run) < 6
        if span[0][0].isupper():
            if run and not near:
                yield run
                run = []
            run, between = ([*run, *between, span] if run else [span]), []
        elif near and span[0] in _SMALL and len(between) < 2:
            between = [*between, span]
        elif run:
            yield run
            run, between = [], []
    if run:
        yield run


def _plain(
    text: str, said: Sequence[tuple[re.Match[str], _Word]], room: int, covered: frozenset[str]
) -> list[tuple[str, str]]:
    """Pairs of neighbouring content words for half of the room, single words not `covered` for the rest.

    More frequent first, then pairs with a covered word and longer single words, then as in the text.
    Each with its slug.
    """
    pairs: dict[str, int] = {}
    singles: dict[str, int] = {}
    surface: dict[str, str] = {}
    weak = _weak() | covered
    end, before = 0, None
    for match, word in said:
        start = match.start()
        if word.content and before is not None and text[end:start] in _GAPS:
            key = _slug_of_two(before[1], word)
            pairs[key] = pairs.get(key, 0) + 1
            if key not in surface:
                surface[key] = text[before[0] : match.end()]
        if word.alone and word.key not in weak:
            singles[word.key] = singles.get(word.key, 0) + 1
            surface.setdefault(word.key, match.group())
        end, before = match.end(), (start, word) if word.content else None
    two = sorted(pairs, key=lambda key: (-pairs[key], covered.isdisjoint(key.split("-"))))[: room // 2]
    one = sorted(singles, key=lambda key: (-singles[key], -min(len(key), 12)))[: room - len(two)]
    return [(key, surface[key]) for key in (*two, *one)]


__all__ = ["MAX_NAMED", "MAX_TOPICS", "known", "slug", "topics"]
