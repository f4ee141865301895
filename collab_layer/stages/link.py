"""Find what a text refers to: names that are known, and topics that the text itself names.

In:   a text; for `known`, a mapping of folded names to entities.
Out:  entities, with the words that stood for them in the text.
Pure: no look-up anywhere else; ties by place in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Protocol, runtime_checkable

from collab_layer.stages.tokens import STOP, WORD, fold_word, lower, normal, stem, words
from collab_layer.types.entity import Entity

MAX_TOPICS = 12
MAX_NAMED = 9
"""Topics of a text that may be quotes, identifiers and names; the others are plain words."""
MAX_NAME_WORDS = 12
_MAX_SLUG_WORDS = 6
_MAX_SLUG = 96
_READ = 8_000

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
    found = [lower(token) for token, _, _ in words(normal(text))]
    kept = [part for part in found if part not in STOP] or found
    joined = "-".join(stem(part).replace("'", "") for part in kept[:_MAX_SLUG_WORDS])
    return joined[:_MAX_SLUG].strip("-")


@runtime_checkable
class Headed(Protocol):
    """Names that tell what they begin with: most words of a text begin none."""

    @property
    def heads(self) -> Container[str]:
        """The first word of every name, folded; others may be among them."""
        ...


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
    found: dict[Entity, str] = {}
    spans = list(words(text))
    folded = [fold_word(token) for token, _, _ in spans]
    at = 0
    heads = names.heads if isinstance(names, Headed) else None
    while at < len(spans):
        opens = heads is None or folded[at] in heads
        size = _longest(text, spans, folded, at, names) if opens else 0
        if size:
            start, end = spans[at][1], spans[at + size - 1][2]
            found.setdefault(names[" ".join(folded[at : at + size])], text[start:end])
        at += max(size, 1)
    return list(found.items())


def _longest(
    text: str, spans: list[tuple[str, int, int]], folded: list[str], at: int, names: Mapping[str, Entity]
) -> int:
    for size in range(min(MAX_NAME_WORDS, len(spans) - at), 0, -1):
        if " ".join(folded[at : at + size]) in names and (size > 1 or _usable(text, *spans[at])):
            return size
    return 0


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
    named = sorted((*_quoted(text), *_identifiers(text), *_proper(text)), key=lambda found: (found.rank, found.at))
    best: dict[str, str] = {}
    _take(best, (found.surface for found in named), min(MAX_NAMED, limit))
    covered = frozenset(part for key in best for part in key.split("-"))
    _take(best, _plain(_without_paths(text), limit - len(best), covered), limit)
    return [(Entity("topic", key), surface) for key, surface in best.items()]


def _take(best: dict[str, str], surfaces: Iterable[str], limit: int) -> None:
    for surface in surfaces:
        if len(best) >= limit:
            return
        key = slug(surface)
        if len(key) > 1 and key not in STOP and not key.replace("-", "").isdigit():
            best.setdefault(key, surface)


def _quoted(text: str) -> Iterator[_Found]:
    for match in _QUOTED.finditer(text):
        inside = " ".join(next(group for group in match.groups() if group).split()).strip(" .,;:!?")
        content = [token for token, _, _ in words(inside)]
        if 1 <= len(content) <= 8 and any(lower(token) not in STOP for token in content):
            yield _Found(0, match.start(), inside)


def _identifiers(text: str) -> Iterator[_Found]:
    for match in _PATH.finditer(text):
        last = match.group(2).strip(".-")
        if _ROOTED.match(match.group(1)) and len(last) > 2 and not _VERSION.fullmatch(last):
            yield _Found(1, match.start(), last)
    for match in WORD.finditer(_without_paths(text)):
        if _identifier(match.group()):
            yield _Found(1, match.start(), match.group())


def _without_paths(text: str) -> str:
    return _PATH.sub(lambda match: " . " if _ROOTED.match(match.group(1)) else match.group(), text)


@lru_cache(maxsize=1 << 16)
def _identifier(token: str) -> bool:
    if _CODE.fullmatch(token):
        return True
    if _VERSION.fullmatch(token) or _OPAQUE.fullmatch(token):
        return False
    if _CAMEL.fullmatch(token) or _DOTTED.fullmatch(token):
        return True
    return ("_" in token or "::" in token) and any(char.isalpha() for char in token)


def _proper(text: str) -> Iterator[_Found]:
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


def _plain(text: str, room: int, covered: frozenset[str]) -> list[str]:
    """Pairs of neighbouring content words for half of the room, single words not `covered` for the rest.

    More frequent first, then pairs with a covered word and longer single words, then as in the text.
    """
    pairs: Counter[str] = Counter()
    singles: Counter[str] = Counter()
    surface: dict[str, str] = {}
    previous: re.Match[str] | None = None
    weak = _weak() | covered
    for match in WORD.finditer(text):
        token = match.group()
        content, alone = _says(token)
        if content and previous and text[previous.end() : match.start()] in _GAPS:
            pair = text[previous.start() : match.end()]
            key = slug(pair)
            pairs[key] += 1
            surface.setdefault(key, pair)
        if alone and (key := slug(token)) not in weak:
            singles[key] += 1
            surface.setdefault(key, token)
        previous = match if content else None
    two = sorted(pairs, key=lambda key: (-pairs[key], covered.isdisjoint(key.split("-"))))[: room // 2]
    one = sorted(singles, key=lambda key: (-singles[key], -min(len(key), 12)))[: room - len(two)]
    return [surface[key] for key in (*two, *one)]


@lru_cache(maxsize=1 << 16)
def _says(token: str) -> tuple[bool, bool]:
    """Whether a word may be part of a topic, and whether it may be one by itself."""
    if lower(token) in STOP:
        return False, False
    plain = bool(_PLAIN_WORD.fullmatch(token))
    return plain or token.isalpha(), plain


__all__ = ["MAX_NAMED", "MAX_TOPICS", "known", "slug", "topics"]
