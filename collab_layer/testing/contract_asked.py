"""Checks of other ways to ask a store: by query, as of a time, for its owners, for vectors.

In:   a store and the author's hooks.
Out:  one test per promise; skipped by the ability's name where it is not promised.
"""

from __future__ import annotations

import asyncio

import numpy as np

from collab_layer.ports.backend import Can, MemoryBackend
from collab_layer.testing.contract_base import ContractBase, settled
from collab_layer.testing.contract_texts import BREAD, LOOKALIKES, PARSER


class AskedRecords(ContractBase):
    """`Can.SEARCH`, `AS_OF`, `LIST_OWNERS` and `EMBED`."""

    def test_search_finds_the_owners_best_records_first(self, backend: MemoryBackend) -> None:
        """At most k of the owner's own records, scored, best first."""
        store = self.needs(backend, Can.SEARCH)

        async def story() -> None:
            ann, bob = self.someone("ann"), self.someone("bob")
            await self.puts(store, ann, BREAD, PARSER, "Trains leave at noon")
            await self.puts(store, bob, f"{PARSER} too")
            found = await store.search(ann, "parser fails on quotes", k=2)
            scores = [record.score for record in found]
            assert 1 <= len(found) <= 2
            assert found[0].text == PARSER
            assert {record.owner for record in found} == {ann}
            assert None not in scores
            assert scores == sorted(scores, reverse=True)

        self.run(story())

    def test_search_understands_russian(self, backend: MemoryBackend) -> None:
        """A Russian query finds the Russian note about it."""
        store = self.needs(backend, Can.SEARCH)

        async def story() -> None:
            ann = self.someone()
            await self.puts(store, ann, "Парсер падает на вложенных кавычках", "Тесту нужна соль")
            found = await store.search(ann, "парсер падает", k=1)
            assert [record.text for record in found] == ["Парсер падает на вложенных кавычках"]

        self.run(story())

    def test_the_past_reads_as_it_was(self, backend: MemoryBackend) -> None:
        """Before, between and after two memories, exactly those that held are given."""
        store = self.needs(backend, Can.AS_OF)

        async def story() -> None:
            ann, times = self.someone(), [self.now(store)]
            for text in (PARSER, BREAD):
                await asyncio.sleep(self.tick_s)
                await self.puts(store, ann, text)
                await asyncio.sleep(self.tick_s)
                times.append(self.now(store))
            read = [await store.records_as_of(ann, at) for at in times]
            assert [{record.text for record in records} for records in read] == [set(), {PARSER}, {PARSER, BREAD}]

        self.run(story())

    def test_owners_are_listed_while_they_have_records(self, backend: MemoryBackend) -> None:
        """Each owner once, odd ids included, until the last record is gone."""
        store = self.needs(backend, Can.LIST_OWNERS)

        async def story() -> None:
            owners = [self.someone(name, kind) for kind, name in LOOKALIKES] + [self.someone("Анна:2")]
            refs = [(await self.puts(store, owner, PARSER, BREAD)) for owner in owners]
            listed = await store.owners()
            assert len(listed) == len(set(listed))
            assert set(owners) <= set(listed)
            for ref in refs[0]:
                await settled(self.remove(store, ref))
            assert owners[0] not in await store.owners()
            assert set(owners[1:]) <= set(await store.owners())

        self.run(story())

    def test_the_embedder_gives_unit_vectors(self, backend: MemoryBackend) -> None:
        """One float32 vector of its dimension per text, of length one, the same for the same text."""
        store = self.needs(backend, Can.EMBED)

        async def story() -> None:
            vectors = await store.embedder.embed([PARSER, "Съешь ещё булок", PARSER])
            assert store.embedder.id
            assert vectors.dtype == np.float32
            assert vectors.shape == (3, store.embedder.dim)
            assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
            assert np.allclose(vectors[0], vectors[2], atol=1e-5)
            assert not np.allclose(vectors[0], vectors[1], atol=1e-2)

        self.run(story())
