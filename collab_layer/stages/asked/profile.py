"""What is known around a candidate, as a block of a prompt: the request, own things, facets.

In:   the entity's own things, facets, perhaps an instruction; a fence, room in tokens.
Out:  a `Profile` whose block says plainly where nothing is known.
Pure. Every foreign text is quoted; what is in quarantine is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from collab_layer.stages.fence import Fence
from collab_layer.types.facet import Facet
from collab_layer.types.tokens import estimate_tokens

FACETS_SHOWN = 12
OWN_SHOWN = 10
OWN_SHARE, FACET_SHARE = 0.2, 0.6
"""Of the room that instructions and names of candidates leave."""
NO_FACETS = "no facets are known"
NO_OWN = "nothing of its own is known"
_REQUEST_TOKENS = 60
_OWN_TOKENS = 14
_FACET_TOKENS = 32
_ABOUT_TOKENS = 30
_LEAST = 6


class Profile:
    """What every candidate is judged by.

    Attributes:
        ids: Alias of each facet shown to its id.
        request: The instruction, quoted; None if there is none to show.
        own: Own things shown, quoted.
        facets: Lines of facets shown.
    """

    def __init__(self, fence: Fence, own: Sequence[str], facets: Sequence[Facet], instruction: str | None) -> None:
        self._fence, self._own, self._facets = fence, own[:OWN_SHOWN], facets[:FACETS_SHOWN]
        self.request = fence.said(instruction, _REQUEST_TOKENS) if instruction else None
        self.own: list[str] = []
        self.facets: list[str] = []
        self.ids: dict[str, str] = {}

    def fill(self, room: int) -> int:
        """Take own things and facets while they fit.

        Args:
            room: Tokens for all but names of candidates and what frames them.

        Returns:
            What is left of it for words about the candidates; below 0 if there was not enough.
        """
        room -= estimate_tokens(self.data("candidates", ()))
        own_room, facet_room = int(room * OWN_SHARE), int(room * FACET_SHARE)
        for thing in self._own:
            line = self._fence.said(thing, _OWN_TOKENS)
            if line is not None and (cost := estimate_tokens(line) + 1) <= own_room:
                own_room, room = own_room - cost, room - cost
                self.own.append(line)
        for facet in self._facets:
            text = self._fence.said(facet.text, _FACET_TOKENS)
            line = f"e{len(self.facets) + 1} ({facet.confidence:.1f}) {text}"
            if text is not None and (cost := estimate_tokens(line) + 1) <= facet_room:
                facet_room, room = facet_room - cost, room - cost
                self.ids[f"e{len(self.facets) + 1}"] = facet.id
                self.facets.append(line)
        return room

    def data(self, title: str, lines: Sequence[str]) -> str:
        """The whole block, the candidates' lines under `title` last."""
        inside = [f"request: {self.request}"] if self.request else []
        inside += ["own:", *(self.own or [NO_OWN]), "facets:", *(self.facets or [NO_FACETS])]
        return self._fence.block("data", [*inside, f"{title}:", *lines])


def with_about(fence: Fence, lines: Sequence[str], about: Sequence[str | None], room: int) -> list[str]:
    """Lines with what is known of each candidate, with the same room for each that has something."""
    each = min(_ABOUT_TOKENS, room // max(1, sum(1 for text in about if text)) - 2)
    out: list[str] = []
    for line, text in zip(lines, about, strict=False):
        shown = fence.said(text, each) if text and each >= _LEAST else None
        out.append(f"{line}: {shown}" if shown else line)
    return out


__all__ = ["FACETS_SHOWN", "Profile", "with_about"]
