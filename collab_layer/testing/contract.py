"""What every store behind the layer must keep, as a pytest class to inherit.

In:   a `backend` fixture, and `put` and `remove`, by the author of an adapter.
Out:  one test per promise. Promises of the port's base always run; those of an ability
      the store does not promise are skipped with the ability's name as the reason.

    class TestMine(BackendContract):
        @pytest.fixture
        def backend(self):
            return self.run(open_my_store())

Owners are new in every test, so that a shared server can be used. No pytest plugin is
needed: each test runs on one event loop of its own, the one that `self.run` uses.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from collab_layer.testing.contract_asked import AskedRecords
from collab_layer.testing.contract_base import ContractBase
from collab_layer.testing.contract_owned import OwnedRecords
from collab_layer.testing.contract_promised import ErasesRecords, WatchesChanges, WritesDerived
from collab_layer.testing.contract_service import KeepsPromises


class BackendContract(OwnedRecords, AskedRecords, WatchesChanges, WritesDerived, ErasesRecords, KeepsPromises):
    """The whole contract; see `ContractBase` for what an author gives."""

    @pytest.fixture(autouse=True)
    def _own_loop(self) -> Iterator[None]:
        yield
        self.close_loop()


__all__ = ["BackendContract", "ContractBase"]
