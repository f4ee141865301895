"""A real Mem0 as a contestant, by itself and with neighbours.

In:   records, added as they are (`infer=False`: no model is asked).
Out:  what Mem0's search finds, filled into the budget in its order.

`alone` searches the asking entity's memories, as Mem0 does; nothing of ours is in it but the embedder.
`shared` is the naive pool: one Mem0 for everybody. `together` is the drop-in, `collab_layer_mem0.collaborative`
over the same Mem0: the entity's own memories, and at most three of its neighbours'. A private record
keeps a name that nobody else searches for.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from collab_layer.bench.mem0_offline import offline_memory
from collab_layer.bench.stores import EVERYONE, Item, free_moment, private
from collab_layer.config import Settings
from collab_layer.errors import CollabError
from collab_layer.ports.models import Embedder
from collab_layer.sync import CollabLayer
from collab_layer.types.entity import Entity
from collab_layer.types.tokens import estimate_tokens

FOUND = 60
"""Memories that one search brings, before those that came later are left out."""
NEIGHBOURS = 3
"""Items of neighbours that one search adds, at most: the drop-in's default."""
PATIENCE_S = 60.0
"""How long a search waits for the layer, since on a busy machine it would else go on without."""
_POOL = "session:everyone"


class Mem0Store:
    """Mem0 over Chroma in a temporary folder.

    Args:
        shares: False gives each entity a memory of its own; True puts what is for everyone together.
        embedder: None takes the default one.
    """

    model_calls = 0
    """No model is set up: it would have no key."""

    def __init__(self, *, shares: bool = False, embedder: Embedder | None = None) -> None:
        self._shares = shares
        self._folder = Path(tempfile.mkdtemp(prefix="collab-mem0-"))
        self._memory = offline_memory(self._folder, "bench", embedder)
        self._at: dict[str, datetime] = {}
        self._private: set[str] = set()

    async def add(self, entity: str, text: str, links: Sequence[str], t: datetime, scope: str) -> str:
        """See `Store.add`; Mem0 by itself takes no links."""
        id_ = await asyncio.to_thread(added, self._memory, self._whose(entity, scope), text, {})
        self._at[id_] = t
        return id_

    async def context(self, entity: str, query: str, t: datetime, budget: int) -> list[Item]:
        """See `Store.context`."""
        return filled(await asyncio.to_thread(self._rows, entity, query), self._at, t, budget)

    async def aclose(self) -> None:
        """Close it and remove its files."""
        await asyncio.to_thread(self._memory.close)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _whose(self, entity: str, scope: str) -> str:
        """Under which name a record is kept."""
        if scope == EVERYONE:
            return _POOL if self._shares else entity
        self._private.add(entity)
        return private(entity)

    def _rows(self, entity: str, query: str) -> list[Row]:
        """All that the entity may read, best first."""
        rows = search(self._memory, _POOL if self._shares else entity, query)
        if entity in self._private:
            rows += search(self._memory, private(entity), query)
        return sorted(rows, key=lambda row: -float(row.get("score") or 0.0))


class Mem0WithNeighbours(Mem0Store):
    """The drop-in over the same Mem0; what is for everyone is granted to everyone.

    The items of neighbours stand in front, since a search brings few of them and own memories
    without end: who builds a prompt leaves room for them.
    """

    def __init__(self, *, embedder: Embedder | None = None) -> None:
        super().__init__(embedder=embedder)
        if find_spec("collab_layer_mem0") is None:
            raise CollabError("`collab_layer_mem0` is missing: pip install collab-layer-mem0")
        settings, url = Settings(worker=False), str(self._folder / "collab.db")
        self._layer = CollabLayer.open(url, tenant="bench", embedder=embedder, settings=settings)
        wrap: Any = import_module("collab_layer_mem0").collaborative
        self._wrapped = wrap(self._memory, self._layer, limit=NEIGHBOURS, timeout_s=PATIENCE_S)
        self._shown: dict[tuple[str, datetime], str] = {}
        self._granted: set[str] = set()

    async def add(self, entity: str, text: str, links: Sequence[str], t: datetime, scope: str) -> str:
        """See `Store.add`; links and times go into the metadata that the drop-in reads."""
        whose = self._whose(entity, scope)
        at = free_moment(self._shown, whose, t)
        about = {"created_at": at.isoformat(), **({"collab_links": ",".join(links)} if links else {})}
        id_ = await asyncio.to_thread(added, self._wrapped, whose, text, about)
        self._at[id_], self._shown[whose, at] = t, id_
        if scope == EVERYONE and whose not in self._granted:
            self._granted.add(whose)
            await asyncio.to_thread(self._layer.grant, whose, "tenant", "records")
        return id_

    async def settle(self) -> None:
        """See `Settles.settle`."""
        await asyncio.to_thread(self._layer.drain)

    async def aclose(self) -> None:
        """Close both."""
        await super().aclose()
        await asyncio.to_thread(self._layer.close)

    def _rows(self, entity: str, query: str) -> list[Row]:
        rows = search(self._wrapped, entity, query)
        if entity in self._private:
            rows += search(self._memory, private(entity), query)
        derived = [row for row in rows if str(row["id"]).startswith("collab:")]
        own = [row for row in rows if not str(row["id"]).startswith("collab:")]
        return [*map(self._named, derived), *own]

    def _named(self, row: Row) -> Row:
        """An item of a neighbour under the id of the memory that it repeats."""
        cited = json.loads(row["metadata"]["collab_evidence"])
        at = datetime.fromisoformat(row["created_at"])
        ids = (self._shown.get((one["owner"], at)) for one in cited if one.get("owner"))
        return {**row, "id": next((one for one in ids if one is not None), row["id"])}


Row = dict[str, Any]


def added(memory: Any, whose: str, text: str, about: Mapping[str, Any]) -> str:
    """Keep a text as it is; its id."""
    done = memory.add(text, **_scope(whose), metadata=dict(about) or None, infer=False)
    return str(done["results"][0]["id"])


def search(memory: Any, whose: str, query: str, most: int = FOUND) -> list[Row]:
    """What Mem0 finds among one name's memories, best first."""
    return list(memory.search(query, filters=_scope(whose), top_k=most, threshold=0.0)["results"])


def filled(rows: Sequence[Row], at: Mapping[str, datetime], t: datetime, budget: int) -> list[Item]:
    """What of some memories fits, in their order; none that came after `t`."""
    items: list[Item] = []
    for row in rows:
        cost, known = estimate_tokens(row["memory"]) + 1, row["id"] in at
        if cost <= budget and (not known or at[row["id"]] <= t):
            items.append(Item(row["memory"], (row["id"],) if known else (), cost))
            budget -= cost
    return items


def alone(embedder: Embedder | None = None) -> Mem0Store:
    """Mem0 as it is: each entity finds its own memories."""
    return Mem0Store(embedder=embedder)


def shared(embedder: Embedder | None = None) -> Mem0Store:
    """The naive pool: one Mem0 for everybody."""
    return Mem0Store(shares=True, embedder=embedder)


def together(embedder: Embedder | None = None) -> Mem0WithNeighbours:
    """Mem0 with what neighbours know, through the drop-in."""
    return Mem0WithNeighbours(embedder=embedder)


def _scope(whose: str) -> dict[str, str]:
    owner = Entity.parse(whose)
    return {"run_id" if owner.kind == "session" else f"{owner.kind}_id": owner.id}


__all__ = ["Mem0Store", "Mem0WithNeighbours", "added", "alone", "search", "shared", "together"]
