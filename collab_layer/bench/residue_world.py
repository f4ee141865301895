"""Who said what in the erasure run, and what must be nowhere any more.

In:   a source of chance; answers to operations.
Out:  the next operations; the words that are forgotten. Every text holds a word of its own.
Kept outside of the database, so that nothing in it can be taken for the truth.
"""

from __future__ import annotations

import random
import string
from dataclasses import dataclass, field
from typing import Any

from collab_layer.bench.residue_worker import Op

OWNERS = 24
ITEMS = tuple(f"item:i{number}" for number in range(12))
WORDS = ("worms", "dunes", "pins", "builds", "caches", "tests", "flags", "paths", "plans", "notes", "lamps", "bells")
BATCH = 60
_VERBS = ("observe", "remember", "grant", "context", "publish", "drain", "note", "entity", "influence", "revoke")
_OFTEN = (15, 15, 6, 6, 6, 2, 36, 2, 2, 8)


@dataclass(slots=True)
class World:
    """What was said, and what is forgotten."""

    draw: random.Random
    owners: list[str] = field(default_factory=list[str])
    notes: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Id of an interaction, a memory or a notice, to its owner and its word."""
    grants: list[str] = field(default_factory=list[str])
    gone: set[bytes] = field(default_factory=set[bytes])
    receipts: list[str] = field(default_factory=list[str])

    def batch(self) -> list[Op]:
        """Operations over what is there now; whatever one of them erases, later ones may still name."""
        while len(self.owners) < OWNERS:
            self.owners.append(f"user:{self._word()}")
        return [self._op() for _ in range(BATCH)]

    def note(self, op: Op, answer: Any) -> None:
        """What an answered operation means for what may be left."""
        if op["verb"] == "forget":
            self._forget(op["what"])
        for name in (op.get("owner"), op.get("to")):
            if name is not None:  # one that was forgotten, and named again, is there again
                self.gone.discard(name.partition(":")[2].encode())
        if answer is None:
            return
        if op["verb"] in ("observe", "remember", "publish"):
            self.notes[answer] = (op["owner"], op["word"])
        elif op["verb"] == "grant":
            self.grants.append(answer)

    def _word(self) -> str:
        """A word that was never said."""
        return "zq" + "".join(self.draw.choices(string.ascii_lowercase, k=18))

    def _forget(self, what: str) -> None:
        """Nothing of it may be left, nor of its name."""
        if what in self.notes:
            self.gone.add(self.notes.pop(what)[1].encode())
            return
        self.gone.add(what.partition(":")[2].encode())
        for id_ in [id_ for id_, (owner, _) in self.notes.items() if owner == what]:
            self._forget(id_)
        if what in self.owners:
            self.owners.remove(what)

    def _op(self) -> Op:
        draw = self.draw
        (verb,) = draw.choices(_VERBS, _OFTEN)
        owner, other = draw.sample(self.owners, 2)
        if verb in ("observe", "remember", "publish"):
            word = self._word()
            said = draw.choices(WORDS, k=draw.choice((4, 12, 40, 150)))
            text = f"{word} {' '.join(said)} {word}"
            if verb == "publish":
                return {"verb": verb, "owner": owner, "text": text[:1900], "to": "tenant", "word": word}
            target = draw.choice(ITEMS)
            return {"verb": verb, "owner": owner, "text": text, "target": target, "word": word, "key": word}
        if verb == "note" and self.notes:
            return {"verb": "forget", "what": draw.choice(list(self.notes))}
        if verb == "entity":
            return {"verb": "forget", "what": owner}
        if verb == "influence":
            return {"verb": "forget_influence", "what": owner}
        if verb == "revoke" and self.grants:
            return {"verb": verb, "what": draw.choice(self.grants)}
        if verb == "grant":
            return {"verb": verb, "owner": owner, "to": draw.choice((other, "tenant"))}
        if verb == "drain":
            return {"verb": verb}
        return {"verb": "context", "owner": owner, "about": " ".join(draw.choices(WORDS, k=4))}


__all__ = ["World"]
