"""Several items of one reader that say the same, as one new item.

In:   items that are shown, or stand behind an earlier merged one.
Out:  a `Merged` for each group of two or more; nothing is changed or mixed.
Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from collab_layer.stages.alike import alike, words
from collab_layer.types.upkeep import Merged, Piece


def duplicates(pieces: Sequence[Piece], *, delta: float, aliases: Mapping[int, int] | None = None) -> list[Merged]:
    """Items of one kind and one set of links that say the same, each group as one.

    Items of different principals join only where their reader may read all of them whatever it
    reads for; otherwise only items of the very same principals do, so that a merged item is read
    by nobody who could not read each part. Words are never mixed: the wording is that of the best
    supported part, the newest of them. `aliases` are principals that count as another one.
    """
    groups: dict[tuple[object, ...], list[Piece]] = {}
    for piece in pieces:
        said = words(piece.text) if piece.mergeable else ()
        if said:
            who = None if piece.readable else piece.principals
            group = (piece.kind, piece.level, frozenset(piece.links), who, frozenset(Counter(said).items()))
            groups.setdefault(group, []).append(piece)
    out: list[Merged] = []
    for group in groups.values():
        out += [_one(parts, delta, aliases or {}) for parts in _clusters(group) if len(parts) > 1]
    return sorted(out, key=lambda one: one.parts)


def _clusters(group: Sequence[Piece]) -> list[list[Piece]]:
    """Each item joins the first, best supported one that says the same."""
    found: list[list[Piece]] = []
    for piece in sorted(group, key=lambda one: (-one.confidence, -one.at, one.id)):
        for cluster in found:
            if alike(words(cluster[0].text), words(piece.text)):
                cluster.append(piece)
                break
        else:
            found.append([piece])
    return found


def _one(parts: Sequence[Piece], delta: float, aliases: Mapping[int, int]) -> Merged:
    first = parts[0]
    voices = voices_of(parts, delta, aliases)
    ids = tuple(sorted(piece.id for piece in parts))
    return Merged(
        parts=ids,
        worded=first.id,
        kind=first.kind,
        key=f"merged:{ids[0]}",
        text=first.text,
        confidence=joint(voices.values()),
        trust=min(piece.trust for piece in parts),
        hop=max(piece.hop for piece in parts),
        links=first.links,
        sources=_sources(parts, voices, aliases),
        at=max(piece.at for piece in parts),
        expires=max(piece.expires for piece in parts),
    )


def voices_of(parts: Sequence[Piece], delta: float, aliases: Mapping[int, int] | None = None) -> dict[int, float]:
    """What each principal says for the statement, in [0, delta], however often it says it.

    Of a part with confidence c and n principals each counts `1 - (1 - c) ** (1 / n)`, so that
    together they say c again; of several parts the strongest counts, and no voice more than delta.
    """
    voices: dict[int, float] = {}
    for piece in parts:
        confidence = min(max(piece.confidence, 0.0), 1.0)
        behind = {(aliases or {}).get(principal, principal) for principal in piece.principals}
        each = 1 - (1 - confidence) ** (1 / len(behind))
        for principal in behind:
            voices[principal] = max(voices.get(principal, 0.0), min(each, delta))
    return dict(sorted(voices.items()))


def joint(voices: Iterable[float]) -> float:
    """Support by independent principals, in [0, 1]: `1 - product(1 - voice)`.

    Never a sum. With one voice more or less it moves by no more than that voice, so by delta at most.
    """
    return 1 - prod(1 - voice for voice in voices)


def _sources(
    parts: Sequence[Piece], voices: Mapping[int, float], aliases: Mapping[int, int]
) -> tuple[tuple[str, int, float], ...]:
    """Each principal's share of the support, spread over its sources as in the parts."""
    raw: dict[str, tuple[int, float]] = {}
    for piece in parts:
        for source, principal, weight in piece.sources:
            raw[source] = (principal, max(weight, raw.get(source, (principal, 0.0))[1]))
    whole: dict[int, float] = {}
    for principal, weight in raw.values():
        voice = aliases.get(principal, principal)
        whole[voice] = whole.get(voice, 0.0) + weight
    total = sum(voices.values())
    out: list[tuple[str, int, float]] = []
    for source, (principal, weight) in raw.items():
        voice = aliases.get(principal, principal)
        share = voices[voice] / total * weight / whole[voice] if total and weight else 0.0
        out.append((source, principal, share))
    out += [(piece.id, min(piece.principals), 0.0) for piece in parts]
    return tuple(sorted(out, key=lambda one: (-round(one[2], 9), one[0])))


__all__ = ["duplicates", "joint", "voices_of"]
