"""Zep's user groups as audiences of the layer: teams whose members are those of the groups.

In:   a client and a layer of the same kind.
Out:  `joined` and `left` told to the layer, once each; what was done.

Who was in a group when it was last looked at is kept in the ledger, since the layer does not
list members: keep that file with the layer's database. A run that was interrupted is finished
by the next one.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from collab_layer import AsyncCollabLayer, CollabLayer
from collab_layer.errors import InputError
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction
from collab_layer_zep import mapping
from collab_layer_zep.backend import LEDGER, NAME
from collab_layer_zep.client import Api, AsyncZep, Zep
from collab_layer_zep.ledger import Ledger, Member

KIND: Final = "team"
WAIT_S: Final = 60.0
Teams = Mapping[str, Entity | str]


class Mirrored(NamedTuple):
    """What a run did.

    Attributes:
        teams: The entity of each group, by the group's uuid.
        joined: Members that the layer was told of.
        left: Members that it was told are none any more.
        nameless: Users whose ids are too long to name; they are in no team.
    """

    teams: Mapping[str, Entity]
    joined: int
    left: int
    nameless: int


def mirror_groups(
    zep: Any,
    layer: CollabLayer,
    *,
    teams: Teams | None = None,
    name: str = NAME,
    ledger: str | os.PathLike[str] = LEDGER,
    timeout_s: float = 30.0,
) -> Mirrored:
    """Bring the layer's teams up to date with Zep's user groups; run it from time to time.

    Members may then read what was granted to their team: `layer.grant(owner, to="team:support")`.
    Whoever has left a group may not, from the next read on.

    Args:
        zep: A `Zep`.
        layer: The operator's.
        teams: Which entity stands for which group, by the group's uuid; groups that are not named
            are left out. None mirrors every group, as `team:` and its name.
        name: Of the store within the layer.
        ledger: SQLite file with who was in which group.
        timeout_s: For one request, > 0.

    Raises:
        InputError: Two groups have one name, or a name cannot be used; name them in `teams`.
        NotPermittedError: The layer acts for a principal.
        ZepAuthError: The project has no user groups; they belong to Zep's Enterprise plan.
    """
    if not isinstance(zep, Zep) or not isinstance(layer, CollabLayer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("mirror_groups takes a Zep and a CollabLayer; see mirror_groups_async")
    return asyncio.run(_Mirror(zep, layer, name, ledger, timeout_s).run(teams))


async def mirror_groups_async(
    zep: Any,
    layer: AsyncCollabLayer,
    *,
    teams: Teams | None = None,
    name: str = NAME,
    ledger: str | os.PathLike[str] = LEDGER,
    timeout_s: float = 30.0,
) -> Mirrored:
    """The same for an `AsyncZep` and an `AsyncCollabLayer`; see `mirror_groups`."""
    if not isinstance(zep, AsyncZep) or not isinstance(layer, AsyncCollabLayer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("mirror_groups_async takes an AsyncZep and an AsyncCollabLayer; see mirror_groups")
    return await _Mirror(zep, layer, name, ledger, timeout_s).run(teams)


class _Mirror:
    def __init__(self, zep: Any, layer: Any, name: str, ledger: str | os.PathLike[str], timeout_s: float) -> None:
        if timeout_s <= 0:
            raise InputError(f"timeout_s must be above 0, not {timeout_s}")
        self._api, self._layer, self._name = Api(zep, name, timeout_s, timeout_s), layer, name
        self._ledger = Ledger(ledger, name)

    async def run(self, teams: Teams | None) -> Mirrored:
        wanted = await self._teams(teams)
        joined = left = nameless = 0
        async with self._ledger.alone("groups", WAIT_S):
            for group in await self._ledger.groups():
                if group not in wanted:
                    left += await self._leave(group, (await self._ledger.members(group)).values())
            for group, team in wanted.items():
                users = [mapping.user_entity(row.get("user_id"), row["uuid"]) async for row in self._api.members(group)]
                now = {str(user) for user in users if user is not None}
                nameless += len(users) - len(now)
                before = await self._ledger.members(group)
                left += await self._leave(group, _leaving(before.values(), now, str(team)))
                joined += await self._join(group, now, str(team))
        return Mirrored(wanted, joined, left, nameless)

    async def _teams(self, teams: Teams | None) -> dict[str, Entity]:
        groups = {str(row["uuid"]): row.get("name") async for row in self._api.groups()}
        if teams is not None:
            named = {uuid.lower(): Entity.parse(team) for uuid, team in teams.items()}
            return {group: named[group] for group in groups if group in named}
        found: dict[str, Entity] = {}
        for group, name in groups.items():
            team = _team(group, name)
            if team in found.values():
                raise InputError(f"two user groups are called `{name}`; name each in `teams`, by its uuid")
            found[group] = team
        return found

    async def _leave(self, group: str, members: Iterable[Member]) -> int:
        going = [one if one.state == "leaving" else _changed(one, "leaving") for one in members]
        if going:
            await self._ledger.keep_members(group, going)
            await self._tell("left", going)
            await self._ledger.drop_members(group, [one.member for one in going])
        return len(going)

    async def _join(self, group: str, now: set[str], team: str) -> int:
        before = await self._ledger.members(group)
        coming = [one for one in before.values() if one.state == "joining"]
        coming += [Member(one, team, "joining", uuid.uuid4().hex) for one in sorted(now - before.keys())]
        if coming:
            await self._ledger.keep_members(group, coming)
            await self._tell("joined", coming)
            await self._ledger.keep_members(group, [one._replace(state="present") for one in coming])
        return len(coming)

    async def _tell(self, verb: str, members: Sequence[Member]) -> None:
        told = [
            Interaction(
                actor=Entity.parse(one.member),
                target=Entity.parse(one.team),
                verb=verb,
                key=f"{self._name}:{verb}:{one.token}",
            )
            for one in members
        ]
        if isinstance(self._layer, CollabLayer):
            await asyncio.to_thread(self._layer.observe, told)
        else:
            await self._layer.observe(told)


def _leaving(before: Iterable[Member], now: set[str], team: str) -> list[Member]:
    """Who is not in the group any more, or was told of under another team."""
    return [one for one in before if one.member not in now or one.team != team or one.state == "leaving"]


def _changed(member: Member, state: str) -> Member:
    return member._replace(state=state, token=uuid.uuid4().hex)


def _team(group: str, name: object) -> Entity:
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"user group `{group}` has no name; name it in `teams`")
    return Entity(KIND, mapping.encode(name.strip()))


__all__ = ["KIND", "Mirrored", "mirror_groups", "mirror_groups_async"]
