"""Checks of what only some stores promise: a feed, derived items, erasure.

In:   a store and the author's hooks.
Out:  one test per promise; skipped by the ability's name where it is not promised.
"""

from __future__ import annotations

import asyncio

from collab_layer.ports.backend import Can, MemoryBackend
from collab_layer.testing.contract_base import ContractBase, derived, settled
from collab_layer.testing.contract_texts import BREAD, PARSER
from collab_layer.types.entity import MemoryRef


class WatchesChanges(ContractBase):
    """`Can.WATCH`: a feed that can be resumed and misses nothing."""

    def test_a_new_watch_starts_at_now(self, backend: MemoryBackend) -> None:
        """Without a cursor nothing old is given, and what comes next is."""
        store = self.needs(backend, Can.WATCH)

        async def story() -> None:
            await self.puts(store, self.someone(), PARSER)
            items, cursor = await store.changes(None)
            assert items == []
            (ref,) = await self.puts(store, self.someone(), BREAD)
            seen, _ = await self.all_changes(store, cursor)
            assert [(change.ref.id, change.record.text) for change in seen if change.record] == [(ref.id, BREAD)]

        self.run(story())

    def test_a_watch_resumes_where_it_stopped(self, backend: MemoryBackend) -> None:
        """A cursor gives the same changes each time, in order, also one by one."""
        store = self.needs(backend, Can.WATCH)

        async def story() -> None:
            _, start = await store.changes(None)
            refs = await self.puts(store, self.someone(), *(f"Note number {number}" for number in range(5)))
            whole, end = await self.all_changes(store, start)
            again, _ = await self.all_changes(store, start)
            single, _ = await self.all_changes(store, start, limit=1)
            assert [change.ref.id for change in whole] == [ref.id for ref in refs]
            assert [change.ref.id for change in again] == [ref.id for ref in refs]
            assert [change.ref.id for change in single] == [ref.id for ref in refs]
            assert await self.all_changes(store, end) == ([], end)

        self.run(story())

    def test_a_watch_sees_deletions(self, backend: MemoryBackend) -> None:
        """A deleted memory comes as its ref without a record."""
        store = self.needs(backend, Can.WATCH)

        async def story() -> None:
            gone, _ = await self.puts(store, self.someone(), PARSER, BREAD)
            _, start = await store.changes(None)
            await settled(self.remove(store, gone))
            seen, _ = await self.all_changes(store, start)
            assert [(change.ref.backend, change.ref.id, change.record) for change in seen] == [
                (store.name, gone.id, None)
            ]

        self.run(story())

    def test_a_watch_sees_edits(self, backend: MemoryBackend) -> None:
        """An edited memory comes with its new text and version."""
        store = self.needs(backend, Can.WATCH)

        async def story() -> None:
            (ref,) = await self.puts(store, self.someone(), PARSER)
            (before,) = await store.read([ref])
            _, start = await store.changes(None)
            await settled(self.edit(store, ref, BREAD))
            seen, _ = await self.all_changes(store, start)
            assert seen
            assert {change.ref.id for change in seen} == {ref.id}
            last = seen[-1].record
            assert last is not None
            assert last.text == BREAD
            assert last.ref.version != before.ref.version

        self.run(story())

    def test_our_own_writes_are_no_news(self, backend: MemoryBackend) -> None:
        """What was written as derived does not come back in the feed as a record."""
        store = self.needs(backend, Can.WATCH)
        self.needs(backend, Can.WRITE)

        async def story() -> None:
            _, start = await store.changes(None)
            update = derived(self.someone())
            await store.write([update])
            seen, _ = await self.all_changes(store, start)
            assert [change.record.text for change in seen if change.record] == []

        self.run(story())


class WritesDerived(ContractBase):
    """`Can.WRITE`: derived items under a key, apart from the owner's own memories."""

    def test_a_write_answers_with_a_receipt_for_each_key(self, backend: MemoryBackend) -> None:
        """One receipt per update, in order, with distinct native ids."""
        store = self.needs(backend, Can.WRITE)

        async def story() -> None:
            updates = [derived(self.someone(), f"Peers advise {number}") for number in range(3)]
            receipts = await store.write(updates)
            assert [receipt.key for receipt in receipts] == [update.id for update in updates]
            assert {receipt.backend for receipt in receipts} == {store.name}
            assert len({receipt.native_id for receipt in receipts}) == 3
            assert await store.retract([update.id for update in updates]) == 3
            assert await store.write([]) == []

        self.run(story())

    def test_the_same_key_is_stored_once(self, backend: MemoryBackend) -> None:
        """Writing again, even with other words, gives the first receipt and stores nothing new."""
        store = self.needs(backend, Can.WRITE)

        async def story() -> None:
            update = derived(self.someone())
            first = await store.write([update])
            again = await store.write([update])
            reworded = await store.write([update.model_copy(update={"text": "Something else"})])
            assert first == again == reworded
            assert await store.retract([update.id]) == 1

        self.run(story())

    def test_a_key_written_concurrently_is_stored_once(self, backend: MemoryBackend) -> None:
        """Eight writers with one key at the same time leave one item."""
        store = self.needs(backend, Can.DEDUPE)

        async def story() -> None:
            update = derived(self.someone())
            answers = await asyncio.gather(*(store.write([update]) for _ in range(8)))
            assert len({receipt.native_id for receipts in answers for receipt in receipts}) == 1
            assert await store.retract([update.id]) == 1
            assert await store.retract([update.id]) == 0

        self.run(story())

    def test_derived_items_never_appear_among_the_owners_own(self, backend: MemoryBackend) -> None:
        """No list, search, read of the past or list of owners shows what was derived."""
        store = self.needs(backend, Can.WRITE)

        async def story() -> None:
            ann, stranger = self.someone("ann"), self.someone("stranger")
            await self.puts(store, ann, BREAD)
            before = await self.owner_list(store)
            await store.write([derived(ann, PARSER), derived(stranger, PARSER)])
            assert await self.owned_texts(store, ann, PARSER) == {BREAD}
            assert await self.owned_texts(store, stranger, PARSER) == set()
            assert await self.owner_list(store) == before

        self.run(story())

    def test_retracting_removes_exactly_the_keys_given(self, backend: MemoryBackend) -> None:
        """The answer counts what was there; other keys and the owner's own records stay."""
        store = self.needs(backend, Can.WRITE)

        async def story() -> None:
            ann = self.someone()
            await self.puts(store, ann, BREAD)
            gone, kept = derived(ann, "Peers advise one"), derived(ann, "Peers advise two")
            await store.write([gone, kept])
            assert await store.retract([gone.id, "update:unknown"]) == 1
            assert await store.retract([gone.id]) == 0
            assert await store.retract([]) == 0
            assert await self.owned_texts(store, ann, BREAD) == {BREAD}
            assert await store.retract([kept.id]) == 1

        self.run(story())

    def test_a_retracted_key_can_be_written_again(self, backend: MemoryBackend) -> None:
        """Retracting forgets the key."""
        store = self.needs(backend, Can.WRITE)

        async def story() -> None:
            update = derived(self.someone())
            await store.write([update])
            await store.retract([update.id])
            assert [receipt.key for receipt in await store.write([update])] == [update.id]
            assert await store.retract([update.id]) == 1

        self.run(story())


class ErasesRecords(ContractBase):
    """`Can.ERASE`: nothing is left, in the past neither."""

    def test_an_erased_memory_is_gone_from_every_read(self, backend: MemoryBackend) -> None:
        """Now and in the past; the count says how many there were; the others stay."""
        store = self.needs(backend, Can.ERASE)

        async def story() -> None:
            ann, bob = self.someone("ann"), self.someone("bob")
            gone, _ = await self.puts(store, ann, PARSER, BREAD)
            await self.puts(store, bob, PARSER)
            unknown = MemoryRef(backend=store.name, id="unknown")
            assert await store.erase([gone, unknown]) == 1
            assert await store.erase([gone]) == 0
            assert await store.erase([]) == 0
            assert await store.read([gone]) == []
            assert await self.owned_texts(store, ann, f"{PARSER} {BREAD}") == {BREAD}
            assert await self.owned_texts(store, bob, PARSER) == {PARSER}

        self.run(story())

    def test_a_ref_of_another_store_erases_nothing(self, backend: MemoryBackend) -> None:
        """The same native id under another store's name is not ours."""
        store = self.needs(backend, Can.ERASE)

        async def story() -> None:
            (ref,) = await self.puts(store, self.someone(), PARSER)
            assert await store.erase([ref.model_copy(update={"backend": f"not-{store.name}"})]) == 0
            assert len(await store.read([ref])) == 1

        self.run(story())

    def test_erasure_reaches_the_history(self, backend: MemoryBackend) -> None:
        """No copy is left in the store's own files and tables."""
        store = self.needs(backend, Can.ERASE)

        async def story() -> None:
            (ref,) = await self.puts(store, self.someone(), PARSER)
            assert list(self.traces(store, PARSER)), "`traces` does not find what is surely there"
            await store.erase([ref])
            assert list(self.traces(store, PARSER)) == []

        self.run(story())

    def test_what_is_kept_of_an_owner_beside_its_records_goes_alone(self, backend: MemoryBackend) -> None:
        """Records that the owner still has, and those of others, stay; an owner without any is no error."""
        store = self.needs(backend, Can.ERASE_OWNER)

        async def story() -> None:
            ann, bob = self.someone("ann"), self.someone("bob")
            deleted, _ = await self.puts(store, ann, PARSER, BREAD)
            await self.puts(store, bob, BREAD)
            await settled(self.remove(store, deleted))
            for _ in range(2):
                await store.erase_owner(ann)
            await store.erase_owner(self.someone("nobody"))
            assert await self.owned_texts(store, ann, BREAD) == {BREAD}
            assert await self.owned_texts(store, bob, BREAD) == {BREAD}

        self.run(story())

    def test_a_watch_sees_erasures(self, backend: MemoryBackend) -> None:
        """An erased memory comes as its ref without a record."""
        store = self.needs(backend, Can.ERASE)
        self.needs(backend, Can.WATCH)

        async def story() -> None:
            (ref,) = await self.puts(store, self.someone(), PARSER)
            _, start = await store.changes(None)
            await store.erase([ref])
            seen, _ = await self.all_changes(store, start)
            assert [(change.ref.id, change.record) for change in seen] == [(ref.id, None)]

        self.run(story())
