"""What may be told, made in full only when it is looked at: of forty lessons a dozen find room.

In:   a text, who is behind it, how the rest is made.
Out:  the facet as its reader sees it, and the item to store for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import count

from collab_layer.graph.derived import Item
from collab_layer.stages.orders import joined
from collab_layer.types.facet import Facet
from collab_layer.types.prompt import OVERHEAD_TOKENS, least_line, line
from collab_layer.types.tokens import estimate_tokens

Pair = tuple[Facet, Item | None]


class Made:
    """One facet, and the item to store for it, if it is to be stored.

    Args:
        text: What it says.
        behind: Dense ids of those behind it, as far as they are known.
        make: The rest; called at most once.
    """

    __slots__ = ("_line", "_make", "_pair", "behind", "text")

    def __init__(self, text: str, behind: frozenset[int], make: Callable[[], Pair]) -> None:
        self.text, self.behind, self._make = text, behind, make
        self._pair: Pair | None = None
        self._line: str | None = None

    @classmethod
    def ready(cls, facet: Facet) -> Made:
        """A facet that is there, of which nothing is to be stored."""
        return cls(facet.text, frozenset(), lambda: (facet, None))

    def _whole(self) -> Pair:
        if self._pair is None:
            self._pair = self._make()
        return self._pair

    @property
    def facet(self) -> Facet:
        """As its reader sees it."""
        return self._whole()[0]

    @property
    def item(self) -> Item | None:
        """What to store for it."""
        return self._whole()[1]

    @property
    def line(self) -> str:
        """Its line in a prompt."""
        if self._line is None:
            self._line = line(self.facet)
        return self._line

    @property
    def cost(self) -> int:
        """Tokens of its line and of the line break."""
        return estimate_tokens(self.line) + 1

    @property
    def least(self) -> int:
        """What its cost is at least; costs next to nothing."""
        return estimate_tokens(least_line(self.text)) + 1


class Run:
    """A part of what may be told, in the order to tell it; drawn only as far as somebody looks, and once.

    Args:
        made: Whatever gives it.
        least: Tokens that each of it costs at least; once less is left, nobody looks any further.
    """

    __slots__ = ("_drawn", "_more", "least")

    def __init__(self, made: Iterable[Made], least: int = 0) -> None:
        self.least, self._more, self._drawn = least, iter(made), list[Made]()

    def __iter__(self) -> Iterator[Made]:
        """From the first, however often it is asked."""
        for place in count():
            if place == len(self._drawn):
                drawn = next(self._more, None)
                if drawn is None:
                    return
                self._drawn.append(drawn)
            yield self._drawn[place]


def pack(runs: Iterable[Run], budget: int, gone: Collection[str] = ()) -> tuple[list[Made], int]:
    """Whole facets in order while they fit, and their tokens.

    A text is shown once, and none that makes an order of an earlier one.

    Args:
        runs: What may be told, one after the other.
        budget: Tokens for all.
        gone: Ids that are not shown.
    """
    out = _packed(runs, budget, gone)
    bad = set(joined([one.line for one in out]))
    if bad:
        out = [one for place, one in enumerate(out) if place not in bad]
    return out, OVERHEAD_TOKENS + sum(one.cost for one in out) if out else 0


def _packed(runs: Iterable[Run], budget: int, gone: Collection[str]) -> list[Made]:
    left, seen = budget - OVERHEAD_TOKENS, set[str]()
    out: list[Made] = []
    for run in runs:
        if run.least > left:
            continue
        for one in run:
            if one.text in seen or one.least > left or (cost := one.cost) > left or one.facet.id in gone:
                continue
            seen.add(one.text)
            left -= cost
            out.append(one)
            if run.least > left:
                break
    return out


__all__ = ["Made", "Run", "pack"]
