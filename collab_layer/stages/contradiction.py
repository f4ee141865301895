"""Which of one reader's items a newer event takes back.

In:   items, each with the one event it tells of, where it does.
Out:  old item -> newer item.
Pure. Decided by events only: the same actor about the same thing, later. Never by the likeness of
vectors: no embedder separates "loves" from "hates".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collab_layer.types.upkeep import Piece

_ADDING = """
    interacted remembered described read viewed visited mentioned noted said told asked answered commented wrote
    added posted sent used played listened watched joined left
"""
ADDING = frozenset(_ADDING.split())
"""Verbs that do not take back what the same actor said of the same thing before."""


def contradicted(pieces: Iterable[Piece]) -> dict[str, str]:
    """Items that a newer event takes back, each with the newest item that does.

    Two items of one kind are about the same if they tell of the same actor and have the same key,
    or report the same native memory, or the same verb about the same target (verbs that add
    nothing but a mention apart), or both how the same target ended.
    """
    groups: dict[tuple[object, ...], list[Piece]] = {}
    for piece in pieces:
        for subject in _subjects(piece):
            groups.setdefault((piece.kind, *subject), []).append(piece)
    newer: dict[str, Piece] = {}
    for group in groups.values():
        newest = max(group, key=_order)
        for piece in group:
            if _when(piece) < _when(newest) and (piece.id not in newer or _order(newer[piece.id]) < _order(newest)):
                newer[piece.id] = newest
    return {id_: piece.id for id_, piece in newer.items()}


def _subjects(piece: Piece) -> list[tuple[object, ...]]:
    event = piece.event
    if event is None:
        return []
    found: list[tuple[object, ...]] = [("key", piece.key)]
    if event.ref is not None:
        found.append(("ref", event.actor, event.ref))
    if event.target is not None and event.verb not in ADDING:
        found.append(("said", event.actor, event.verb, event.target))
    if event.target is not None and event.ended:
        found.append(("ended", event.actor, event.target))
    return found


def _when(piece: Piece) -> tuple[int, int]:
    return (0, 0) if piece.event is None else (piece.event.at, piece.event.number)


def _order(piece: Piece) -> tuple[tuple[int, int], int, str]:
    return _when(piece), piece.at, piece.id


def overtaken(pieces: Sequence[Piece]) -> dict[str, Piece]:
    """Items that stepped back under their own key although they tell of the newest event of all.

    That happens when an older event comes in late. Each with the item that stands in its place.
    """
    keyed: dict[tuple[str, str], list[Piece]] = {}
    for piece in pieces:
        keyed.setdefault((piece.kind, piece.key), []).append(piece)
    found: dict[str, Piece] = {}
    for group in keyed.values():
        newest = max(group, key=_order)
        instead = [piece for piece in group if piece.id == newest.superseded]
        if instead and all(piece.event is not None for piece in group) and _when(instead[0]) < _when(newest):
            found[newest.id] = instead[0]
    return found


__all__ = ["ADDING", "contradicted", "overtaken"]
