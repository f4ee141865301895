"""Derived items for the stages of upkeep, with everything that does not matter filled in."""

from __future__ import annotations

from dataclasses import replace

from collab_layer.stages.consolidate import Tidied
from collab_layer.types.scope import Level
from collab_layer.types.time import FOREVER
from collab_layer.types.upkeep import Happening, Merged, Piece


def piece(id_: str, text: str = "Dune is long", **more: object) -> Piece:
    """An update about link 9, on the word of principal 1."""
    sources = more.pop("sources", None) or ((f"i{id_[1:]}", more.pop("principal", 1), 1.0),)
    parts: dict[str, object] = {
        "kind": "update", "key": f"update:{id_}", "confidence": 0.2, "trust": 1.0, "hop": 1, "level": Level.RECORDS,
        "links": (9,), "at": 10, "expires": FOREVER,
    }  # fmt: skip
    return Piece(id=id_, text=text, **{**parts, "sources": sources, **more})


def event(at: int, verb: str = "liked", *, actor: int = 1, target: int | None = 5, **more: object) -> Happening:
    """What an item tells of."""
    parts: dict[str, object] = {"ended": False, "number": at}
    return Happening(actor=actor, target=target, verb=verb, at=at, **{**parts, **more})


def written(pieces: list[Piece], tidied: Tidied) -> list[Piece]:
    """The items after the changes were written."""
    left = [
        replace(one, superseded=tidied.marks.get(one.id, one.superseded), expires=tidied.ends.get(one.id, one.expires))
        for one in pieces
        if one.id not in tidied.deleted
    ]
    return left + [_made(id_, one) for id_, one in tidied.made.items()]


def _made(id_: str, one: Merged) -> Piece:
    return Piece(
        id=id_, kind=one.kind, key=one.key, text=one.text, confidence=one.confidence, trust=one.trust, hop=one.hop,
        level=Level.RECORDS, links=one.links, sources=one.sources, at=one.at, expires=one.expires,
    )  # fmt: skip
