"""Derived items in the store: once, whole, with where they came from; also when processes race or die."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from collab_layer_graphiti import Fact, GraphitiBackend, derived_group
from collab_layer_graphiti.derived import native_id
from collab_layer_graphiti.server import FalkorServer
from collab_layer_graphiti.testing import HashEmbedder
from graphiti_core.edges import EntityEdge, EpisodicEdge
from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode

from collab_layer.errors import BackendError
from collab_layer.testing.contract_base import derived
from collab_layer.types.entity import Entity, MemoryRef
from collab_layer.types.facet import FacetKind
from collab_layer.types.update import Source, Update

ANN, BOB, PIP = Entity("user", "ann"), Entity("user", "bob"), Entity("tool", "pip")
WRITER = """
import asyncio, sys
from collab_layer_graphiti import GraphitiBackend
from collab_layer.types.entity import Entity
from collab_layer.types.update import Source, Update

def item(n):
    source = Source(id=f"i{n}", principal=Entity("user", "bob"), weight=1)
    return Update(id=f"update:{n}", owner=Entity("user", "ann"), text=f"Совет {n} " + "x" * 2000, confidence=0.5,
                  links=(Entity("tool", "pip"),), sources=(source,))

async def main(url, graph, first, last, step):
    store = GraphitiBackend(url, graph=graph, write=True)
    print("ready", flush=True)
    sys.stdin.readline()
    for start in range(first, last, step):
        await store.write([item(n) for n in range(start, start + step)])
        print(start + step, flush=True)
    await store.aclose()

asyncio.run(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
"""


def writer(url, graph, first, last, step):
    call = [sys.executable, "-W", "ignore", "-c", WRITER, url, graph, *map(str, (first, last, step))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(call, text=True, env={**os.environ, "GRAPHITI_TELEMETRY_ENABLED": "false"}, **pipes)


def begin(process):
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("go\n")
    process.stdin.flush()


def stored(url_port, graph):
    """What a server holds: facts by uuid with their attributes, and how often each; nodes by name."""
    import redis

    with redis.Redis(port=url_port, decode_responses=True) as client:
        facts = client.execute_command(
            "GRAPH.RO_QUERY", graph,
            "MATCH (a)-[e]->(b) RETURN e.uuid, size(e.fact), e.collab_key, e.collab_derived, a.name, b.name",
        )[1]  # fmt: skip
        nodes = client.execute_command("GRAPH.RO_QUERY", graph, "MATCH (n) RETURN n.name")[1]
    return facts, sorted(name for (name,) in nodes)


class TestWhatIsWritten:
    def test_an_item_says_what_it_is_whose_and_where_it_came_from(self, store, graphiti):
        began, ends = (datetime.now(UTC) + timedelta(days=days) for days in (-9, 3))
        item = Update(
            id="d1", owner=ANN, kind=FacetKind.UPDATE, text="Закрепите версию парсера", confidence=0.5, hop=2,
            links=(PIP,), sources=(Source(id="i7", principal=BOB, weight=1.0),), at=began, expires=ends,
        )  # fmt: skip

        async def story():
            made = store(embedder=HashEmbedder())
            (receipt,) = await made.write([item])
            await made.write([derived(ANN).model_copy(update={"id": "d2", "kind": FacetKind.LESSON})])
            async with graphiti() as one:
                edge = await EntityEdge.get_by_uuid(one.driver, receipt.native_id)
                ends_of = {node.uuid: node for node in await EntityNode.get_by_group_ids(one.driver, [edge.group_id])}
                other = await EntityEdge.get_by_uuid(one.driver, native_id("d2"))
                found = await one.search("закрепите парсер", group_ids=["ann", derived_group(ANN)])
            assert (edge.name, other.name) == ("COLLAB_UPDATE", "COLLAB_SIGNAL")
            assert (edge.group_id, edge.fact) == (derived_group(ANN), item.text)
            assert (edge.valid_at, edge.invalid_at) == (began, ends)
            assert ends_of[edge.source_node_uuid].name == "user:ann"
            assert ends_of[edge.target_node_uuid].name == "tool:pip"
            said = {key: value for key, value in edge.attributes.items() if key.startswith("collab_")}
            assert said == {
                "collab_derived": True, "collab_schema": 1, "collab_key": "d1", "collab_kind": "update",
                "collab_for": "user:ann", "collab_confidence": 0.5, "collab_hop": 2, "collab_origin_ids": ["i7"],
                "collab_principals": ["user:bob"], "collab_links": ["tool:pip"],
            }  # fmt: skip
            assert item.text in {edge.fact for edge in found}, "its owner's own Graphiti does not find it"

        asyncio.run(story())

    def test_retracting_everything_leaves_no_node_of_ours(self, store, falkor, graph):
        async def story():
            made, items = store(), [derived(ANN), derived(BOB), derived(ANN).model_copy(update={"links": (PIP,)})]
            await made.remember(ANN, [Fact(text="Uses SQLite")])
            await made.write(items)
            assert await made.retract([item.id for item in items]) == 3

        asyncio.run(story())
        facts, nodes = stored(falkor.port, graph)
        assert (len(facts), nodes) == (1, ["ann"])

    def test_more_than_a_batch_is_written(self, store):
        async def story():
            made, items = store(), [derived(ANN, f"Peers advise {number}") for number in range(450)]
            await made.write(items)
            assert await made.retract([item.id for item in items]) == 450

        asyncio.run(story())

    def test_a_key_that_comes_twice_in_one_call_is_stored_once_as_it_came_first(self, store, falkor, graph):
        async def story():
            made, item = store(), derived(ANN, "Peers advise one")
            first, again = await made.write([item, item.model_copy(update={"text": "Peers advise another"})])
            assert first == again
            (row,) = await made._graph.ask("MATCH ()-[e]->() RETURN e.fact AS fact")
            assert row["fact"] == "Peers advise one"

        asyncio.run(story())


class TestRaces:
    def test_two_processes_that_write_the_same_keys_store_each_once(self, falkor, graph, graphs):
        before = graphs()
        processes = [writer(falkor.url, graph, *span, 3) for span in ((0, 60), (30, 90))]
        for process in processes:
            begin(process)
        for process in processes:
            process.communicate(timeout=90)
            assert process.returncode == 0
        facts, nodes = stored(falkor.port, graph)
        assert sorted(row[0] for row in facts) == sorted(native_id(f"update:{n}") for n in range(90))
        assert nodes == ["tool:pip", "user:ann"]
        assert graphs() == sorted([*before, graph])


class TestDeath:
    def test_a_writer_that_is_killed_leaves_whole_batches_and_can_be_repeated(self, falkor, graph):
        process = writer(falkor.url, graph, 0, 4000, 4)
        begin(process)
        for _ in range(10):
            process.stdout.readline()
        process.kill()
        process.communicate(timeout=30)
        facts, nodes = stored(falkor.port, graph)
        assert len(facts) % 4 == 0
        assert len(facts) >= 40
        self.whole(facts, nodes)
        again = writer(falkor.url, graph, 0, len(facts) + 4, 4)
        begin(again)
        again.communicate(timeout=90)
        self.whole(*stored(falkor.port, graph))
        assert len(stored(falkor.port, graph)[0]) == len(facts) + 4

    def test_a_server_that_is_killed_keeps_what_it_acknowledged_whole(self, graphs):
        with FalkorServer(durable=True) as server:
            asyncio.run(self.until_killed(server))
            server.start()
            assert graphs(server) == ["ann"]
            facts, nodes = stored(server.port, "ann")
            self.whole(facts, nodes)
            assert {native_id(key) for key in self.acknowledged} <= {row[0] for row in facts}
            asyncio.run(self.again(server))
            facts, nodes = stored(server.port, "ann")
            self.whole(facts, nodes)
            assert {row[2] for row in facts} >= set(self.sent)

    async def until_killed(self, server):
        self.acknowledged, self.sent = [], []
        store = GraphitiBackend(server.url, graph="ann", write=True)
        threading.Timer(0.7, server.kill).start()

        async def write_on():
            for number in range(100_000):
                items = [derived(ANN, f"Peers advise {number}", f"update:{number}:{part}") for part in range(3)]
                self.sent += [item.id for item in items]
                await store.write(items)
                self.acknowledged += [item.id for item in items]

        with pytest.raises(BackendError):
            await write_on()
        assert len(self.acknowledged) > 10
        with pytest.raises(BackendError):
            await store.records(ANN)
        await store.aclose()

    async def again(self, server):
        store = GraphitiBackend(server.url, graph="ann", write=True)
        await store.write([derived(ANN, key, key) for key in self.sent[-6:]])
        await store.aclose()

    def whole(self, facts, nodes):
        """Each fact once, with every attribute; each node once."""
        assert len({row[0] for row in facts}) == len(facts)
        assert len(set(nodes)) == len(nodes)
        for uuid_, size, key, is_derived, source, target in facts:
            assert uuid_ == native_id(key)
            assert size > 0
            assert is_derived == "true"
            assert source == "user:ann"
            assert target in nodes

    def test_after_an_outage_the_same_store_goes_on(self):
        with FalkorServer(durable=True) as server:

            async def story():
                store = GraphitiBackend(server.url, write=True)
                await store.write([derived(ANN, key="a")])
                server.kill()
                with pytest.raises(BackendError) as caught:
                    await store.write([derived(ANN, key="b")])
                assert caught.value.retryable
                server.start()
                assert len(await store.write([derived(ANN, key="b")])) == 1
                assert await store.retract(["a", "b"]) == 2
                await store.aclose()

            asyncio.run(story())


class TestErasing:
    def test_erasing_reaches_episodes_summaries_and_the_servers_log(self, store, graphiti, leftovers):
        secret, other = "Ann moved to Lisbon", "Ann drinks tea"

        async def story():
            made = store()
            async with graphiti() as one:
                driver = one.driver
                nodes = [
                    EntityNode(name=name, group_id="ann", summary=f"{secret}. {other}", name_embedding=[1.0])
                    for name in ("Ann", "Lisbon", "tea")
                ]
                for node in nodes:
                    await node.save(driver)
                edges = [
                    EntityEdge(
                        group_id="ann", source_node_uuid=nodes[0].uuid, target_node_uuid=target.uuid, name="X",
                        fact=fact, created_at=datetime.now(UTC), fact_embedding=[1.0],
                    )
                    for fact, target in ((secret, nodes[1]), (other, nodes[2]))
                ]  # fmt: skip
                for content, its in ((f"{secret}!", edges[:1]), (f"{secret}, and {other}", edges)):
                    episode = EpisodicNode(
                        name="talk", group_id="ann", source=EpisodeType.text, source_description="chat",
                        content=content, valid_at=datetime.now(UTC), entity_edges=[edge.uuid for edge in its],
                    )  # fmt: skip
                    await episode.save(driver)
                    for node in nodes if len(its) == 2 else nodes[:2]:
                        mention = {"source_node_uuid": episode.uuid, "target_node_uuid": node.uuid}
                        await EpisodicEdge(group_id="ann", created_at=datetime.now(UTC), **mention).save(driver)
                    for edge in its:
                        edge.episodes.append(episode.uuid)
                for edge in edges:
                    await edge.save(driver)
                assert await made.erase([MemoryRef(backend="graphiti", id=edges[0].uuid)]) == 1
                (left,) = await EntityEdge.get_by_group_ids(driver, ["ann"])
                assert left.fact == other
                found = await EntityNode.get_by_group_ids(driver, ["ann"])
                # Lisbon is still mentioned by the episode that the other fact rests on: its name stays.
                assert [(node.name, node.summary) for node in sorted(found, key=lambda node: node.name)] == [
                    ("Ann", ""), ("Lisbon", ""), ("tea", ""),
                ]  # fmt: skip
                (kept,) = await EpisodicNode.get_by_group_ids(driver, ["ann"])
                assert kept.content == ""
                assert await made.erase([MemoryRef(backend="graphiti", id=edges[1].uuid)]) == 1
                left, _, _ = await driver.execute_query("MATCH (n) RETURN n.name")
                assert left == []

        asyncio.run(story())
        time.sleep(3)  # the log of queries is written late
        assert leftovers("moved to") == []

    def test_where_the_log_cannot_be_cleared_nothing_is_erased_and_asking_again_does_it(self):
        import redis

        with FalkorServer(password="root") as server, redis.Redis(port=server.port, password="root") as admin:
            admin.execute_command("ACL", "SETUSER", "app", "on", ">app", "~*", "+@all", "-del")

            async def story():
                store = GraphitiBackend(server.url, username="app", password="app")
                (ref,) = await store.remember(ANN, [Fact(text="Ann moved to Lisbon")])
                with pytest.raises(BackendError, match="ACL"):
                    await store.erase([ref])
                assert len(await store.read([ref])) == 1
                admin.execute_command("ACL", "SETUSER", "app", "+del")
                assert await store.erase([ref]) == 1
                await store.aclose()

            asyncio.run(story())

    def test_a_derived_item_is_not_erased_as_if_it_were_the_owners(self, store):
        async def story():
            made, item = store(), derived(ANN)
            (receipt,) = await made.write([item])
            assert await made.erase([MemoryRef(backend="graphiti", id=receipt.native_id)]) == 0
            assert await made.retract([item.id]) == 1

        asyncio.run(story())
