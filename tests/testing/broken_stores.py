"""Stores that each break a promise. Not collected by itself: `test_contract.py` runs it and reads who failed."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

from collab_layer.errors import BackendError
from collab_layer.ports.backend import Can, Changes, Page
from collab_layer.testing import InMemoryBackend, InMemoryContract
from collab_layer.types.entity import Entity
from collab_layer.types.health import PartHealth
from collab_layer.types.update import Receipt


class Vectors:
    id, dim = "vectors-1", 8

    async def embed(self, texts, /):
        rng = np.random.default_rng(7)
        return rng.normal(size=(len(texts), self.dim)).astype(np.float32)


class BrokenContract(InMemoryContract):
    store = InMemoryBackend

    @pytest.fixture
    def backend(self):
        return self.store()


class TestHonest(BrokenContract):
    pass


class TestSearchesEverybody(BrokenContract):
    class store(InMemoryBackend):
        async def search(self, owner, query, /, *, k=10):
            found = [record for each in await self.owners() for record in await super().search(each, query, k=k)]
            return sorted(found, key=lambda record: -record.score)


class TestMixesLetterCase(BrokenContract):
    class store(InMemoryBackend):
        def add(self, owner, text, links=(), at=None):
            return super().add(Entity(owner.kind, owner.id.lower()), text, links, at)

        async def records(self, owner, /, *, after=None, limit=500):
            return await super().records(Entity(owner.kind, owner.id.lower()), after=after, limit=limit)


class TestLosesTheKindOfOwners(BrokenContract):
    class store(InMemoryBackend):
        def add(self, owner, text, links=(), at=None):
            return super().add(Entity("user", owner.id), text, links, at)


class TestSplitsOwnersAtTheColon(BrokenContract):
    class store(InMemoryBackend):
        def add(self, owner, text, links=(), at=None):
            return super().add(Entity(owner.kind, owner.id.split(":")[0]), text, links, at)


class TestWritesAscii(BrokenContract):
    class store(InMemoryBackend):
        def add(self, owner, text, links=(), at=None):
            return super().add(owner, text.encode("ascii", "replace").decode(), links, at)


class TestInventsRefs(BrokenContract):
    class store(InMemoryBackend):
        def add(self, owner, text, links=(), at=None):
            return super().add(owner, text, links, at).model_copy(update={"backend": "store"})


class TestRaisesForUnknownRefs(BrokenContract):
    class store(InMemoryBackend):
        async def read(self, refs, /):
            found = await super().read(refs)
            if len(found) < len(refs):
                raise BackendError(self.name, "404")
            return found


class TestRaisesForUnknownOwners(BrokenContract):
    class store(InMemoryBackend):
        async def records(self, owner, /, *, after=None, limit=500):
            page = await super().records(owner, after=after, limit=limit)
            if not page.records:
                raise BackendError(self.name, "404")
            return page


class TestAnswersForOtherStores(BrokenContract):
    class store(InMemoryBackend):
        async def read(self, refs, /):
            return await super().read([ref.model_copy(update={"backend": self.name}) for ref in refs])

        async def erase(self, refs, /):
            return await super().erase([ref.model_copy(update={"backend": self.name}) for ref in refs])


class TestHidesOldRefs(BrokenContract):
    class store(InMemoryBackend):
        async def read(self, refs, /):
            asked = {ref.id: ref.version for ref in refs}
            return [record for record in await super().read(refs) if record.ref.version == asked[record.ref.id]]


class TestKeepsTheVersionAfterEdits(BrokenContract):
    class store(InMemoryBackend):
        def _record(self, memory, version=None, score=None):
            record = super()._record(memory, version, score)
            return record.model_copy(update={"ref": record.ref.model_copy(update={"version": "1"})})


class TestPagesByCount(BrokenContract):
    class store(InMemoryBackend):
        async def records(self, owner, /, *, after=None, limit=500):
            everything = (await super().records(owner)).records
            start = int(after or 0)
            end = start + limit
            return Page(everything[start:end], str(end) if end < len(everything) else None)


class TestPagesOverlap(BrokenContract):
    class store(InMemoryBackend):
        async def records(self, owner, /, *, after=None, limit=500):
            start = None if after is None else str(int(after) - 1)
            page = await super().records(owner, after=start, limit=limit)
            return page


class TestOnlyHidesWhatIsDeleted(BrokenContract):
    class store(InMemoryBackend):
        async def read(self, refs, /):
            with self._lock:
                kept = [self._memories[ref.id] for ref in refs if ref.id in self._memories and ref.backend == self.name]
                return [self._record(memory) for memory in kept]


class TestForgetsScores(BrokenContract):
    class store(InMemoryBackend):
        async def search(self, owner, query, /, *, k=10):
            return [found.model_copy(update={"score": None}) for found in await super().search(owner, query, k=k)]


class TestSearchesEnglishOnly(BrokenContract):
    class store(InMemoryBackend):
        async def search(self, owner, query, /, *, k=10):
            return await super().search(owner, query.encode("ascii", "ignore").decode(), k=k)


class TestReadsThePresentForThePast(BrokenContract):
    class store(InMemoryBackend):
        async def records_as_of(self, owner, at, /):
            return (await self.records(owner)).records


class TestListsOwnersForever(BrokenContract):
    class store(InMemoryBackend):
        async def owners(self):
            await super().owners()
            return sorted({memory.owner for memory in self._memories.values()})


class TestEmbedsAnyhow(BrokenContract):
    @pytest.fixture
    def backend(self):
        return InMemoryBackend(embedder=Vectors())


class TestMixesCallers(BrokenContract):
    class store(InMemoryBackend):
        async def records(self, owner, /, *, after=None, limit=500):
            self.asked = owner
            await asyncio.sleep(0)
            return await super().records(self.asked, after=after, limit=limit)


class TestMixesThreads(BrokenContract):
    class store(InMemoryBackend):
        def add(self, owner, text, links=(), at=None):
            before = self._seq
            time.sleep(0.002)
            self._seq = before
            return super().add(owner, text, links, at)


class TestPromisesWithoutAMethod(BrokenContract):
    class store(InMemoryBackend):
        can = frozenset({Can.SEARCH, Can.IF_MATCH})


class TestAnswersUnpromisedCalls(BrokenContract):
    class store(InMemoryBackend):
        can = frozenset({Can.SEARCH})

        async def owners(self):
            return []


class TestAnswersForMissingMethods(BrokenContract):
    class store(InMemoryBackend):
        def __getattribute__(self, name):
            if name == "can":
                return {"search", "fly"}
            return super().__getattribute__(name)


class TestStartsTheWatchAtTheBeginning(BrokenContract):
    class store(InMemoryBackend):
        async def changes(self, cursor, /, *, limit=500):
            return await super().changes(cursor or "0", limit=limit)


class TestForgetsTheCursor(BrokenContract):
    class store(InMemoryBackend):
        async def changes(self, cursor, /, *, limit=500):
            if cursor is None:
                self.seen = len(self._log)
                return Changes([], str(self.seen))
            found = await super().changes(str(self.seen), limit=limit)
            self.seen += len(found.items)
            return found


class TestLosesDeletions(BrokenContract):
    class store(InMemoryBackend):
        async def changes(self, cursor, /, *, limit=500):
            items, after = await super().changes(cursor, limit=limit)
            return Changes([change for change in items if change.record is not None], after)


class TestSeesNoEdits(BrokenContract):
    class store(InMemoryBackend):
        def edit(self, ref, text, at=None):
            log = list(self._log)
            changed = super().edit(ref, text, at)
            self._log = log
            return changed


class TestEchoesOurWrites(BrokenContract):
    class store(InMemoryBackend):
        async def write(self, updates, /):
            for update in updates:
                self.add(update.owner, update.text)
            return await super().write(updates)


class TestForgetsKeys(BrokenContract):
    class store(InMemoryBackend):
        count = 0

        async def write(self, updates, /):
            self.count += 1
            kept = await super().write(updates)
            return [receipt.model_copy(update={"native_id": f"{receipt.native_id}#{self.count}"}) for receipt in kept]


class TestRacesForKeys(BrokenContract):
    class store(InMemoryBackend):
        def __init__(self):
            super().__init__()
            self.rows = []

        async def write(self, updates, /):
            known = {receipt.key: receipt for receipt in self.rows}
            await asyncio.sleep(0)
            fresh = [
                Receipt(key=update.id, native_id=f"{update.id}#{len(self.rows) + number}", backend=self.name)
                for number, update in enumerate(updates)
                if update.id not in known
            ]
            self.rows += fresh
            made = {receipt.key: receipt for receipt in fresh}
            return [made.get(update.id) or known[update.id] for update in updates]

        async def retract(self, keys, /):
            before = len(self.rows)
            self.rows = [receipt for receipt in self.rows if receipt.key not in keys]
            return before - len(self.rows)


class TestForgetsReceipts(BrokenContract):
    class store(InMemoryBackend):
        async def write(self, updates, /):
            return (await super().write(updates))[:1]


class TestRetractsEverything(BrokenContract):
    class store(InMemoryBackend):
        async def retract(self, keys, /):
            return await super().retract([update.id for update in self.derived()] if keys else [])


class TestRemembersRetractedKeys(BrokenContract):
    class store(InMemoryBackend):
        def __init__(self):
            super().__init__()
            self.gone = set()

        async def write(self, updates, /):
            return await super().write([update for update in updates if update.id not in self.gone])

        async def retract(self, keys, /):
            self.gone |= set(keys)
            return await super().retract(keys)


class TestKeepsHistoryOfErased(BrokenContract):
    class store(InMemoryBackend):
        async def erase(self, refs, /):
            known = [ref for ref in refs if (await self.read([ref]))]
            for ref in known:
                self.delete(ref)
            return len(known)


class TestErasesTheWholeOwner(BrokenContract):
    class store(InMemoryBackend):
        async def erase(self, refs, /):
            for record in await self.read(refs):
                for other in (await self.records(record.owner)).records:
                    if other.ref.id != record.ref.id:
                        self.delete(other.ref)
            return await super().erase(refs)


class TestErasesRecordsToo(BrokenContract):
    class store(InMemoryBackend):
        async def erase_owner(self, owner, /):
            await super().erase_owner(owner)
            await self.erase([record.ref for record in (await self.records(owner)).records])


class TestErasesInSilence(BrokenContract):
    class store(InMemoryBackend):
        async def erase(self, refs, /):
            log = list(self._log)
            count = await super().erase(refs)
            self._log = log[:-1]
            return count


class TestIsDownWhenEmpty(BrokenContract):
    class store(InMemoryBackend):
        async def health(self):
            told = await super().health()
            return told if told.condition != "empty" else told.model_copy(update={"condition": "down"})


class TestHidesAnOutage(BrokenContract):
    class store(InMemoryBackend):
        async def read(self, refs, /):
            return [] if self.down else await super().read(refs)

        async def health(self):
            return PartHealth(name=self.name, condition="empty") if self.down else await super().health()


class TestHidesAnOutageWhenListing(BrokenContract):
    class store(InMemoryBackend):
        async def records(self, owner, /, *, after=None, limit=500):
            return Page([], None) if self.down else await super().records(owner, after=after, limit=limit)


class TestClosesOnce(BrokenContract):
    class store(InMemoryBackend):
        async def aclose(self):
            if self.calls["aclose"]:
                raise RuntimeError("already closed")
            await super().aclose()
