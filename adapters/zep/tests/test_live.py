"""Against Zep Cloud itself, with a key of yours; not run without one.

    COLLAB_LIVE=1 ZEP_API_KEY=z_… make test-zep

A key alone is not enough: one that is set for other work must not make a test run spend anything.

It makes one user, one thread and reserved graphs with names that begin with `collab-live-`, and
deletes them whatever happens. It spends a few direct writes and no language model.
"""

import asyncio
import os
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from collab_layer_zep import Fact, ZepBackend, collaborative
from zep_cloud import Zep
from zep_cloud.core.api_error import ApiError

from collab_layer import CollabLayer, Entity
from collab_layer.config import Settings
from collab_layer.testing.contract_base import derived

WITHOUT = "COLLAB_LIVE and ZEP_API_KEY are not set: nothing of this package was run against Zep Cloud"
WISHED = os.environ.get("COLLAB_LIVE") == "1" and os.environ.get("ZEP_API_KEY")
pytestmark = [
    pytest.mark.skipif(not WISHED, reason=WITHOUT),
    pytest.mark.timeout(900),
]
JAN, JUN = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 6))


@pytest.fixture
def live(tmp_path):
    """A client, a store, and a user of a name that nobody else has; all of it is removed afterwards."""
    zep, name = Zep(base_url=os.environ.get("ZEP_BASE_URL")), f"collab-live-{uuid.uuid4().hex[:12]}"
    user = zep.user.create(user_id=name, first_name="Collab")
    store = ZepBackend(zep, write=True, ledger=tmp_path / "zep.db")
    yield zep, store, Entity("user", name), user
    left = [graph.uuid_ for graph in zep.graph.list(search=name) if graph.type != "user"]
    for delete, id_ in [*((zep.graph.delete, graph) for graph in left), (zep.user.delete, user.uuid_)]:
        try:
            delete(id_)
        except ApiError as error:
            if error.status_code != 404:
                raise


def test_facts_are_stated_read_as_of_a_time_ended_and_erased(live):
    _, store, owner, _ = live

    async def story():
        old, new = await store.remember(
            owner, [Fact(text="The service uses PostgreSQL", valid_at=JAN), Fact(text="Сервис на SQLite", valid_at=JUN)]
        )
        assert await store.end([old], JUN) == 1
        (then,) = await store.records_as_of(owner, JAN + timedelta(days=9))
        (now,) = await store.records_as_of(owner, JUN + timedelta(days=9))
        assert (then.text, now.text) == ("The service uses PostgreSQL", "Сервис на SQLite")
        assert {record.ref.id for record in (await store.records(owner, limit=1)).records} <= {old.id, new.id}
        assert owner in await store.owners()
        assert await store.erase([old, new]) == 2
        assert (await store.records(owner)).records == []

    asyncio.run(story())


def test_derived_items_are_written_once_and_leave_nothing(live):
    zep, store, owner, _ = live
    items = [derived(owner, f"Peers advise {number}") for number in range(3)]

    async def story():
        assert await store.write(items) == await store.write(items)
        assert await store.retract([item.id for item in items]) == 3

    asyncio.run(story())
    assert [graph for graph in zep.graph.list(search=f"collab:for:{owner}")] == []


def test_a_context_carries_what_a_neighbour_knows(live, tmp_path):
    zep, _, owner, user = live
    thread = zep.thread.create(user_uuid=user.uuid_).uuid_
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as layer:
        layer.observe("user:neighbour", text="Sign-in loops: clear the old cookie domain")
        wrapped = collaborative(zep, layer, timeout_s=30, ledger=str(tmp_path / "zep.db"), name="live")
        assert wrapped.thread.get_context(thread).context == zep.thread.get_context(thread).context
        layer.grant("user:neighbour", to=owner, level="records")
        layer.drain()
        found = wrapped.graph.search_edges(user.uuid_, query="sign-in loops").items
        assert [edge.fact for edge in found if edge.uuid_.startswith("collab:")] == [
            "Sign-in loops: clear the old cookie domain"
        ]
