"""Checks of a store as a service: promises, many callers at once, health, closing.

In:   a store and the author's hooks.
Out:  one test per promise; each docstring is the promise.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from collab_layer.errors import BackendError, PluginError, UnsupportedError
from collab_layer.ports.backend import METHODS, Can, MemoryBackend, check_promises
from collab_layer.testing.contract_base import ContractBase, derived
from collab_layer.testing.contract_texts import PARSER
from collab_layer.types.entity import Entity, MemoryRef


class KeepsPromises(ContractBase):
    """It promises what it has, and fails in plain sight."""

    def test_the_store_fits_the_port_and_keeps_its_promises(self, backend: MemoryBackend) -> None:
        """It has the base methods, a name, and a method for each ability it promises."""
        assert isinstance(backend, MemoryBackend)
        assert backend.name
        assert all(isinstance(ability, Can) for ability in backend.can)  # pyright: ignore[reportUnnecessaryIsInstance]
        check_promises(backend)

    def test_a_promise_without_a_method_is_refused(self, backend: MemoryBackend) -> None:
        """The check that guards opening refuses this store once a method is missing."""
        for ability in sorted(backend.can):
            without: Any = _Without(backend, METHODS[ability])
            with pytest.raises(PluginError, match=METHODS[ability]):
                check_promises(without)

    def test_an_unpromised_call_says_so(self, backend: MemoryBackend) -> None:
        """Where a method exists that settings switched off, it raises `UnsupportedError`."""
        owner, at = self.someone(), datetime(2026, 1, 1, tzinfo=UTC)
        arguments = {
            Can.SEARCH: (owner, "x"),
            Can.AS_OF: (owner, at),
            Can.LIST_OWNERS: (),
            Can.WATCH: (None,),
            Can.WRITE: ([derived(owner)],),
            Can.ERASE: ([MemoryRef(backend=backend.name, id="x")],),
            Can.ERASE_OWNER: (owner,),
        }
        for ability, given in arguments.items():
            method = getattr(backend, METHODS[ability], None)
            if ability not in backend.can and method is not None:
                with pytest.raises(UnsupportedError, match=ability):
                    self.run(method(*given))

    def test_many_at_once_lose_and_mix_nothing(self, backend: MemoryBackend) -> None:
        """Eight owners put and read at the same time; each has its own records, once."""

        async def story() -> None:
            owners = [self.someone(f"owner{number}") for number in range(8)]
            await asyncio.gather(*(self._own_three(backend, owner) for owner in owners))
            for owner in owners:
                assert await self.owned_texts(backend, owner, "note of") == _three(owner)

        self.run(story())

    def test_many_threads_lose_and_mix_nothing(self, backend: MemoryBackend) -> None:
        """Eight threads, each with an event loop of its own, do the same."""
        if not self.any_loop:
            pytest.skip("`any_loop` is not set: the port belongs to one event loop")
        owners = [self.someone(f"owner{number}") for number in range(8)]
        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(asyncio.run, self._own_three(backend, owner)) for owner in owners]:
                done.result()
        for owner in owners:
            assert self.run(self.owned_texts(backend, owner, "note of")) == _three(owner)

    async def _own_three(self, backend: MemoryBackend, owner: Entity) -> None:
        await self.puts(backend, owner, *sorted(_three(owner)))
        texts = [record.text for record in await self.all_records(backend, owner)]
        assert sorted(texts) == sorted(_three(owner))

    def test_health_tells_empty_from_ok(self, backend: MemoryBackend) -> None:
        """A store without records is empty, never down; with one it is ok."""

        async def story() -> None:
            before = await backend.health()
            await self.puts(backend, self.someone(), PARSER)
            after = await backend.health()
            assert before.name == after.name == backend.name
            assert before.condition == ("empty" if self.starts_empty else "ok")
            assert after.condition == "ok"

        self.run(story())

    def test_an_outage_never_looks_like_nothing_known(self, backend: MemoryBackend) -> None:
        """While the store cannot be reached health says down and reads raise; then all is back."""

        async def story() -> None:
            ann = self.someone()
            (ref,) = await self.puts(backend, ann, PARSER)
            with self.outage(backend):
                assert (await backend.health()).condition == "down"
                with pytest.raises(BackendError):
                    await backend.read([ref])
                with pytest.raises(BackendError):
                    await backend.records(ann)
            assert (await backend.health()).condition == "ok"
            assert [record.text for record in await backend.read([ref])] == [PARSER]

        self.run(story())

    def test_closing_twice_is_harmless(self, backend: MemoryBackend) -> None:
        """`aclose` may be called again."""

        async def story() -> None:
            await backend.aclose()
            await backend.aclose()

        self.run(story())


class _Without:
    """A store with one method taken away."""

    def __init__(self, store: MemoryBackend, missing: str) -> None:
        self._store, self._missing = store, missing

    def __getattr__(self, name: str) -> object:
        if name == self._missing:
            raise AttributeError(name)
        return getattr(self._store, name)


def _three(owner: Entity) -> set[str]:
    return {f"Note of {owner.id} number {number}" for number in range(3)}
