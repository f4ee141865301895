"""Checks of what every store can do: hold an owner's records, and give them back.

In:   a store and the author's hooks.
Out:  one test per promise; each docstring is the promise.
"""

from __future__ import annotations

import pytest

from collab_layer.ports.backend import MemoryBackend, Page
from collab_layer.testing.contract_base import ContractBase, settled
from collab_layer.testing.contract_texts import BREAD, LOOKALIKES, ODD_NAMES, ODD_TEXTS, PARSER, UNKNOWN_IDS
from collab_layer.types.entity import MemoryRef


class OwnedRecords(ContractBase):
    """What belongs to an owner comes back whole, to nobody else, and says when it changed."""

    def test_a_record_comes_back_as_it_was_put(self, backend: MemoryBackend) -> None:
        """Ref, owner and text survive; its ref reads it again."""

        async def story() -> None:
            ann = self.someone()
            (ref,) = await self.puts(backend, ann, PARSER)
            (listed,) = await self.all_records(backend, ann)
            (read,) = await backend.read([ref])
            assert ref.backend == backend.name
            assert (listed.ref.backend, listed.ref.id) == (backend.name, ref.id)
            assert listed.owner == read.owner == ann
            assert listed.text == read.text == PARSER
            assert listed.ref == read.ref

        self.run(story())

    @pytest.mark.parametrize("text", ODD_TEXTS)
    def test_odd_text_comes_back_unchanged(self, backend: MemoryBackend, text: str) -> None:
        """Russian, emoji, line breaks and quotes are not altered."""

        async def story() -> None:
            ann = self.someone()
            await self.puts(backend, ann, text)
            assert [record.text for record in await self.all_records(backend, ann)] == [text]

        self.run(story())

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_odd_owner_ids_come_back_unchanged(self, backend: MemoryBackend, name: str) -> None:
        """Any id the layer accepts names exactly one owner, and is given back as it was."""

        async def story() -> None:
            owner = self.someone(name)
            await self.puts(backend, owner, PARSER)
            (record,) = await self.all_records(backend, owner)
            assert record.owner == owner

        self.run(story())

    def test_owners_never_see_each_other(self, backend: MemoryBackend) -> None:
        """Neither listing, search nor reads of the past cross owners, however alike their ids are."""

        async def story() -> None:
            owners = [self.someone(name, kind) for kind, name in LOOKALIKES]
            for owner in owners:
                await self.puts(backend, owner, f"Note about {owner.kind} {LOOKALIKES[owners.index(owner)][1]}")
            for owner, (kind, name) in zip(owners, LOOKALIKES, strict=True):
                assert await self.owned_texts(backend, owner, "note about") == {f"Note about {kind} {name}"}

        self.run(story())

    def test_an_unknown_owner_has_no_records(self, backend: MemoryBackend) -> None:
        """An owner without memories gives an empty last page, not an error."""

        async def story() -> None:
            assert await backend.records(self.someone("nobody")) == Page([], None)
            assert await self.owned_texts(backend, self.someone("nobody"), "note") == set()

        self.run(story())

    @pytest.mark.parametrize("odd", UNKNOWN_IDS)
    def test_unknown_refs_are_left_out(self, backend: MemoryBackend, odd: str) -> None:
        """A ref the store does not know is left out, and the others are answered."""

        async def story() -> None:
            (ref,) = await self.puts(backend, self.someone(), PARSER)
            asked = [MemoryRef(backend=backend.name, id=odd), ref]
            assert [record.text for record in await backend.read(asked)] == [PARSER]

        self.run(story())

    def test_refs_of_another_store_are_left_out(self, backend: MemoryBackend) -> None:
        """The same native id under another store's name is not ours."""

        async def story() -> None:
            (ref,) = await self.puts(backend, self.someone(), PARSER)
            assert await backend.read([ref.model_copy(update={"backend": f"not-{backend.name}"})]) == []
            assert await backend.read([]) == []

        self.run(story())

    def test_an_old_ref_reads_the_record_as_it_is_now(self, backend: MemoryBackend) -> None:
        """The version in a ref does not hide the record."""

        async def story() -> None:
            (ref,) = await self.puts(backend, self.someone(), PARSER)
            (record,) = await backend.read([ref.model_copy(update={"version": "long-gone"})])
            assert (record.ref.id, record.text) == (ref.id, PARSER)
            assert record.ref.version != "long-gone"

        self.run(story())

    def test_an_edit_changes_the_version_and_nothing_else_does(self, backend: MemoryBackend) -> None:
        """Reading twice gives one version; another text gives another version."""

        async def story() -> None:
            (ref,) = await self.puts(backend, self.someone(), PARSER)
            (first,) = await backend.read([ref])
            (again,) = await backend.read([ref])
            await settled(self.edit(backend, ref, BREAD))
            (after,) = await backend.read([ref])
            assert first.ref.version == again.ref.version
            assert after.text == BREAD
            assert after.ref.id == ref.id
            assert after.ref.version != first.ref.version

        self.run(story())

    @pytest.mark.parametrize("limit", [1, 3, 7, 8])
    def test_pages_hold_every_record_once_in_a_stable_order(self, backend: MemoryBackend, limit: int) -> None:
        """Whatever the page size, the same records come in the same order, none twice."""

        async def story() -> None:
            ann = self.someone()
            refs = await self.puts(backend, ann, *(f"Note number {number}" for number in range(7)))
            whole = [record.ref.id for record in await self.all_records(backend, ann)]
            paged = [record.ref.id for record in await self.all_records(backend, ann, limit)]
            assert sorted(whole) == sorted(ref.id for ref in refs)
            assert paged == whole

        self.run(story())

    def test_a_removal_behind_the_cursor_hides_no_later_record(self, backend: MemoryBackend) -> None:
        """Paging goes on from the record it reached, not from a count."""

        async def story() -> None:
            ann = self.someone()
            await self.puts(backend, ann, *(f"Note number {number}" for number in range(5)))
            order = [record.ref for record in await self.all_records(backend, ann)]
            page = await backend.records(ann, limit=3)
            await settled(self.remove(backend, order[0]))
            rest = await backend.records(ann, after=page.after, limit=3)
            assert [record.ref.id for record in rest.records] == [ref.id for ref in order[3:]]

        self.run(story())

    def test_a_removed_memory_is_gone(self, backend: MemoryBackend) -> None:
        """After its owner deleted it, no way of reading gives it; the others stay."""

        async def story() -> None:
            ann = self.someone()
            gone, _ = await self.puts(backend, ann, PARSER, BREAD)
            await settled(self.remove(backend, gone))
            assert await backend.read([gone]) == []
            assert await self.owned_texts(backend, ann, f"{PARSER} {BREAD}") == {BREAD}

        self.run(story())
