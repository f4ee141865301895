"""Derived items in Letta: one unattached block each, which no agent sees.

In:   updates under their ids as keys.
Out:  receipts; the notes of an entity, from which its signal block is made again at any time.

Items are only ever made and deleted, never edited, so that two workers cannot lose one
another's. Their tags say whose they are: the tenant, the entity and the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from collab_layer.types.entity import Entity
from collab_layer.types.update import Receipt, Update
from collab_layer_letta import mapping
from collab_layer_letta.client import Api, Json
from collab_layer_letta.locks import gathered
from collab_layer_letta.text import Note

ITEM: Final = "collab_item"
"""Label of an item's block."""
KEY: Final = "collab-key:"
"""How the tag with an item's key begins."""
ABOUT: Final = "A derived item of collab-layer, shown in a signal block; it belongs to no agent."
NOBODY: Final = Entity("agent", "nobody")
"""Stands for the entity of a block whose tag was taken away by hand."""
_CHUNK = 20
"""Keys asked for at once: they go into the address."""


class Items:
    """The derived items of one tenant.

    Args:
        api: The server.
        name: Of the backend, for receipts.
        mark: The tag that stands for the tenant.
    """

    def __init__(self, api: Api, name: str, mark: str) -> None:
        self._api, self._name, self._mark = api, name, mark

    async def notes(self, entity: Entity) -> list[Note]:
        """What is kept for an entity, in no particular order."""
        rows = await self._api.all(
            "/v1/blocks/", label=ITEM, tags=[self._mark, mapping.tag_of(entity)], match_all_tags=True
        )
        return [_note(row) for row in _unique(rows)]

    async def every(self) -> dict[Entity, list[Note]]:
        """What is kept for each entity of the tenant."""
        found: dict[Entity, list[Note]] = {}
        for row in _unique(await self._api.all("/v1/blocks/", label=ITEM, tags=[self._mark])):
            found.setdefault(owner_of(row), []).append(_note(row))
        return found

    async def keep(self, update: Update) -> Receipt:
        """Store an item unless its key is there; of two made at once the one with the lower id stays."""
        held = await self._under([update.id])
        if not held:
            await self._api.post("/v1/blocks/", _block(update, self._mark))
            held = await self._under([update.id])
        first, *more = sorted(str(row["id"]) for row in held) or [""]
        await gathered(partial(self._api.delete, f"/v1/blocks/{one}") for one in more)
        return Receipt(key=update.id, native_id=first, backend=self._name)

    async def find(self, keys: Sequence[str]) -> dict[str, Entity]:
        """Which of the keys are there, and for whom."""
        return {_key(row): owner_of(row) for row in await self._under(keys)}

    async def drop(self, keys: Sequence[str]) -> int:
        """Delete what is kept under the keys; how many keys there were."""
        rows = await self._under(keys)
        await gathered(partial(self._api.delete, f"/v1/blocks/{row['id']}") for row in rows)
        return len({_key(row) for row in rows})

    async def clear(self, entity: Entity) -> None:
        """Delete everything that is kept for an entity."""
        rows = await self._api.all(
            "/v1/blocks/", label=ITEM, tags=[self._mark, mapping.tag_of(entity)], match_all_tags=True
        )
        await gathered(partial(self._api.delete, f"/v1/blocks/{row['id']}") for row in rows)

    async def _under(self, keys: Iterable[str]) -> list[Json]:
        tags = [KEY + key for key in dict.fromkeys(keys)]
        chunks = [tags[start : start + _CHUNK] for start in range(0, len(tags), _CHUNK)]
        lists = await gathered(partial(self._api.all, "/v1/blocks/", label=ITEM, tags=chunk) for chunk in chunks)
        return [row for rows in lists for row in rows if self._mark in (row.get("tags") or ())]


def _block(update: Update, mark: str) -> Json:
    return {
        "label": ITEM,
        "value": update.text,
        "description": ABOUT,
        "read_only": True,
        "tags": [mark, mapping.tag_of(update.owner), KEY + update.id],
        "metadata": {"collab_kind": update.kind.value, "collab_confidence": update.confidence},
    }


def _unique(rows: Sequence[Json]) -> list[Json]:
    return list({_key(row): row for row in sorted(rows, key=lambda row: str(row["id"]), reverse=True)}.values())


def _note(row: Json) -> Note:
    given: Any = mapping.metadata(row).get("collab_confidence")
    return Note(_key(row), str(row["value"]), float(given) if isinstance(given, (int, float)) else 0.0)


def _key(row: Json) -> str:
    return next((str(tag).removeprefix(KEY) for tag in row.get("tags") or () if str(tag).startswith(KEY)), "")


def owner_of(row: Json) -> Entity:
    """The entity that a block of ours is for, by its tag."""
    found = (mapping.entity_of_tag(str(tag)) for tag in row.get("tags") or ())
    return next((one for one in found if one is not None), NOBODY)


__all__ = ["ITEM", "KEY", "NOBODY", "Items", "owner_of"]
