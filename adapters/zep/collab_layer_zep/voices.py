"""Who said what a fact rests on: in a user's threads others may speak, and their words are not the user's.

In:   edges of a user's graph; names of people in threads, and whom they stand for.
Out:  the edges that rest on nobody else's words; what was left out, for `health`.
Never: a guess. Zep knows a speaker by a display name alone. A message of the role `user` without a name is the
user's; with one it is that of whom the name stands for, and where nothing says who that is, nobody's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from collab_layer.types.entity import Entity
from collab_layer_zep.client import Api, Json
from collab_layer_zep.mapping import USER
from collab_layer_zep.places import Places

AT_ONCE: Final = 100
"""Episodes asked for by one request."""
MAX_KEPT: Final = 20_000
SPEAKS: Final = "user"
"""The role of people; what an assistant said in a thread is of the thread's user, as before."""
_log = logging.getLogger("collab_layer_zep")


class Voices:
    """Tells whose words the facts of one project rest on.

    Args:
        api: The project.
        places: Who has which graph.
        named: Whom a name in threads stands for.

    Attributes:
        left_out: Facts that rest on others' words, by the owner of their graph.
    """

    def __init__(self, api: Api, places: Places, named: Mapping[str, Entity]) -> None:
        self._api, self._places = api, places
        self.named = {name.strip().casefold(): entity for name, entity in named.items()}
        self.left_out: dict[Entity, set[str]] = {}
        self._said: dict[str, str | None] = {}

    async def own(self, owner: Entity, graph: str, rows: Sequence[Json]) -> list[Json]:
        """The facts that rest on nobody's words but the owner's."""
        if owner.kind != USER:
            return list(rows)
        said = await self._heard(graph, [one for row in rows for one in _episodes(row)])
        strangers = {name for name in said.values() if name and not await self._is(owner, name)}
        kept: list[Json] = []
        for row in rows:
            if strangers.isdisjoint(said[one] or "" for one in _episodes(row)):
                kept.append(row)
            else:
                self._leave_out(owner, str(row["uuid"]))
        return kept

    def of(self, name: str) -> Entity | None:
        """Whom a name in a thread stands for, as far as that was said."""
        return self.named.get(name.strip().casefold())

    def complaint(self) -> str:
        """How much was left out; empty if nothing was."""
        count = sum(len(some) for some in self.left_out.values())
        owners = ", ".join(f"`{one}`" for one in sorted(self.left_out)[:3])
        return f"{count} facts in graphs of {owners} rest on words of others in their threads" if count else ""

    async def _is(self, owner: Entity, name: str) -> bool:
        known = self.of(name)
        return known == owner if known is not None else name.strip().casefold() in await self._places.names(owner)

    async def _heard(self, graph: str, episodes: Iterable[str]) -> dict[str, str | None]:
        """Who said each episode, by name; kept only once Zep has answered, so that an outage makes nobody the owner."""
        wanted = list(dict.fromkeys(episodes))
        said = {one: self._said[one] for one in wanted if one in self._said}
        missing = [one for one in wanted if one not in said]
        if len(self._said) + len(missing) > MAX_KEPT:
            self._said.clear()
        for start in range(0, len(missing), AT_ONCE):
            part = missing[start : start + AT_ONCE]
            heard: dict[str, str | None] = dict.fromkeys(part)
            async for row in self._api.episodes(graph, part):
                if row.get("role") == SPEAKS and row.get("role_name"):
                    heard[str(row["uuid"])] = str(row["role_name"])
            said |= heard
            self._said |= heard
        return said

    def _leave_out(self, owner: Entity, fact: str) -> None:
        if owner not in self.left_out:
            _log.warning("facts in the graph of `%s` rest on words of others and are left out; see `speakers`", owner)
        self.left_out.setdefault(owner, set()).add(fact)


def _episodes(row: Json) -> list[str]:
    return [str(one) for one in row.get("episode_uuids") or ()]


__all__ = ["SPEAKS", "Voices"]
