"""Names of things that may be found in texts, as they were known at a moment.

In:   entities with their display names and when they were first named.
Out:  mappings of folded names to entities: all, or those known by a moment.

A text may name what was known when it was said: what a caller named by then, and what another text
had named before. So the links of a text follow from what was said by then, and not from the order in
which it was told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from collab_layer.stages.link import Headed
from collab_layer.stages.tokens import fold
from collab_layer.types.entity import OWNER_KINDS, Entity
from collab_layer.types.time import FOREVER

MIN_NAME = 3
"""Characters a display name needs to be looked for in texts."""
_TOPIC = "topic"


class _Held(NamedTuple):
    """One entity under a name; of several the least is meant: what is no topic, then by name.

    Attributes:
        usable: From when on a text may mean it.
        display, named: As they were told.
    """

    is_topic: bool
    name: str
    since: int
    usable: int
    entity: Entity
    display: str
    named: int


class Names(dict[str, Entity], Headed):
    """Folded names; how many words those have that begin with each word."""

    def __init__(self, given: Names | None = None) -> None:
        super().__init__(given or {})
        self._sizes: dict[str, tuple[int, ...]] = {} if given is None else given._sizes.copy()
        self._counts: dict[tuple[str, int], int] = {} if given is None else given._counts.copy()
        """How many names of several words have the same first word and length; of one word there is one at most."""

    def sizes(self, head: str) -> Sequence[int]:
        """How many words the names with this first word have, the most first."""
        return self._sizes.get(head, ())

    def __setitem__(self, key: str, entity: Entity) -> None:
        if key not in self:
            head, size = _shape(key)
            if self._count(head, size, 1) == 1:
                sizes = self._sizes.get(head)
                self._sizes[head] = _of(size) if sizes is None else tuple(sorted((*sizes, size), reverse=True))
        super().__setitem__(key, entity)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        head, size = _shape(key)
        if self._count(head, size, -1) == 0:
            self._sizes[head] = tuple(one for one in self._sizes[head] if one != size)
            if not self._sizes[head]:
                del self._sizes[head]

    def _count(self, head: str, size: int, more: int) -> int:
        if size == 1:
            return max(more, 0)
        count = self._counts[head, size] = self._counts.get((head, size), 0) + more
        if not count:
            del self._counts[head, size]
        return count


def _shape(key: str) -> tuple[str, int]:
    """The first word, and how many there are."""
    return (key.partition(" ")[0], key.count(" ") + 1) if " " in key else (key, 1)


@cache
def _of(size: int) -> tuple[int, ...]:
    """One size, the same object for all: most names have one word."""
    return (size,)


class Known:
    """All names of a tenant; kept current by `put`."""

    def __init__(self) -> None:
        self.all = Names()
        """Whatever is known, the moment left aside."""
        self._held: dict[str, tuple[_Held, ...]] = {}
        self._told: dict[str, _Held] = {}
        self._oldest, self._newest = FOREVER, 0
        self._changes = 0
        self._copy = 0, Names()

    def every(self) -> Mapping[str, Entity]:
        """A copy of all that stays as it is; made anew only when a name was taken in or dropped."""
        kept, changes = self._copy, self._changes
        if kept[0] != changes:
            kept = self._copy = changes, Names(self.all)
        return kept[1]

    def put(self, name: str, display: str, since: int, named: int) -> None:
        """Take in an entity, or what has changed of it."""
        before = self._told.get(name)
        if before is not None:
            if (before.since, before.display, before.named) == (since, display, named):
                return
            self._drop(before)
        kind = name.partition(":")[0]
        if kind in OWNER_KINDS or len(display) < MIN_NAME or since >= FOREVER:
            return
        key, usable = fold(display), min(named, since + 1)
        one = self._told[name] = _Held(kind == _TOPIC, name, since, usable, Entity.parse(name), display, named)
        others = self._held.get(key)
        self._held[key] = held = (one,) if others is None else tuple(sorted((*others, one)))
        self._oldest = min(self._oldest, usable)
        self._newest = max(self._newest, usable)
        self.all[key] = held[0].entity
        self._changes += 1

    def first(self, name: str) -> tuple[int, str] | None:
        """Since when a thing is known, and how it is displayed; None for what is no name."""
        told = self._told.get(name)
        return None if told is None else (told.since, told.display)

    def said_at(self, at: int, beside: Known | None = None) -> Mapping[str, Entity]:
        """What a text that was said at a moment may mean.

        Args:
            at: The moment.
            beside: More names, not taken in yet.
        """
        if beside is not None and at < beside._oldest:
            beside = None
        if beside is None and at >= self._newest:
            return self.all
        if beside is None and at < self._oldest:
            return _NONE
        return _At((self,) if beside is None else (self, beside), at, in_text=True)

    def by(self, at: int) -> Mapping[str, Entity]:
        """What was known by a moment, that included."""
        return _At((self,), at, in_text=False)

    def _drop(self, one: _Held) -> None:
        del self._told[one.name]
        key = fold(one.display)
        left = tuple(other for other in self._held[key] if other is not one)
        if left:
            self._held[key], self.all[key] = left, left[0].entity
        else:
            del self._held[key], self.all[key]
        self._changes += 1


_NONE = Names()


class _At(Mapping[str, Entity], Headed):
    """The names of a moment, looked up when asked for."""

    def __init__(self, known: Sequence[Known], at: int, *, in_text: bool) -> None:
        self._held = [one._held for one in known]  # pyright: ignore[reportPrivateUsage]  of the same file
        self._all = [one.all for one in known]
        self._at, self._in_text = at, in_text

    def sizes(self, head: str) -> Sequence[int]:
        """How many words the names with this first word have, whenever they were said, the most first."""
        found = [sizes for names in self._all if (sizes := names.sizes(head))]
        return found[0] if len(found) == 1 else sorted({size for sizes in found for size in sizes}, reverse=True)

    def _best(self, key: object) -> _Held | None:
        best: _Held | None = None
        for names in self._held:
            for one in names.get(key, ()) if isinstance(key, str) else ():
                if (one.usable if self._in_text else one.since) <= self._at and (best is None or one < best):
                    best = one
        return best

    def __getitem__(self, key: str) -> Entity:
        best = self._best(key)
        if best is None:
            raise KeyError(key)
        return best.entity

    def __iter__(self) -> Iterator[str]:
        keys = dict.fromkeys(key for names in self._held for key in names)
        return (key for key in keys if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        return self._best(key) is not None

    def __bool__(self) -> bool:
        return any(self._held)


__all__ = ["MIN_NAME", "Known"]
