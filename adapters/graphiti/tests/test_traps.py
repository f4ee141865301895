"""Each trap of Graphiti and FalkorDB: that it is there, and that the store does not fall into it."""

import asyncio
import logging
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from collab_layer_graphiti import Fact, derived_group, group_of
from collab_layer_graphiti.testing import HashEmbedder, NoModel
from graphiti_core.driver.driver import GraphProvider
from graphiti_core.edges import EntityEdge
from graphiti_core.errors import GroupIdValidationError
from graphiti_core.helpers import validate_group_id
from graphiti_core.nodes import EntityNode
from graphiti_core.search.search_filters import (
    ComparisonOperator,
    DateFilter,
    SearchFilters,
    edge_search_filter_query_constructor,
)

from collab_layer.testing.contract_base import derived
from collab_layer.types.entity import Entity, MemoryRef

ANN, BOB = Entity("user", "ann"), Entity("user", "bob")
T0 = datetime(2024, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
POSTGRES, SQLITE = "The service stores its data in PostgreSQL", "The service stores its data in SQLite"


def on(days):
    return T0 + days * DAY


def texts(records):
    return {record.text for record in records}


async def stock_indices(graphiti):
    """Make the graph with Graphiti's own indices, those on times included."""
    async with graphiti(stock=True) as made:
        found, _, _ = await made.driver.execute_query("CALL db.indexes()")
        assert any("valid_at" in row["properties"] for row in found if row["label"] == "RELATES_TO")


async def saved(driver, text, group="ann", **times):
    """A fact, as Graphiti itself saves one."""
    nodes = [EntityNode(name=name, group_id=group) for name in ("Ann", "service")]
    for node in nodes:
        node.name_embedding = await HashEmbedder().create(node.name)
        await node.save(driver)
    edge = EntityEdge(
        group_id=group, source_node_uuid=nodes[0].uuid, target_node_uuid=nodes[1].uuid, name="USES", fact=text,
        **{"created_at": T0, "valid_at": T0, **times},
    )  # fmt: skip
    await edge.generate_embedding(HashEmbedder())
    await edge.save(driver)
    return edge


class TestTimes:
    async def story(self, store, graphiti):
        await stock_indices(graphiti)
        made = store()
        await made.remember(ANN, [Fact(text=f"Note {day}", valid_at=on(day)) for day in range(0, 400, 50)])
        return made

    def test_facts_of_the_future_stay_out_though_the_index_on_times_lets_them_through(self, store, graphiti):
        async def story():
            made, at = await self.story(store, graphiti), on(120)
            wanted = {"Note 0", "Note 50", "Note 100"}
            async with graphiti(stock=True) as one:
                query = "MATCH ()-[e:RELATES_TO]->() WHERE e.valid_at <= $at RETURN e.fact AS fact"
                found, _, _ = await one.driver.execute_query(query, at=at)
            assert {row["fact"] for row in found} > wanted, "FalkorDB got better: the trap is gone"
            assert texts(await made.records_as_of(ANN, at)) == wanted
            assert texts(await made.search(ANN, "note", k=50, at=at)) == wanted

        asyncio.run(story())

    def test_search_with_an_embedder_is_as_exact(self, store, graphiti):
        async def story():
            await stock_indices(graphiti)
            made = store(embedder=HashEmbedder())
            await made.remember(ANN, [Fact(text=f"Note {day}", valid_at=on(day)) for day in range(0, 400, 50)])
            assert texts(await made.search(ANN, "note", k=50, at=on(60))) == {"Note 0", "Note 50"}

        asyncio.run(story())

    def test_every_moment_reads_as_a_replay_of_all_facts_does(self, store, graphiti):
        async def story():
            await stock_indices(graphiti)
            made = store()
            stated = [
                Fact(text=f"Fact {n}", valid_at=on(7 * n), invalid_at=on(7 * n + 20 + n) if n % 3 else None)
                for n in range(40)
            ]
            await made.remember(ANN, stated)
            for day in range(-1, 320, 3):
                held = {
                    one.text
                    for one in stated
                    if one.valid_at <= on(day) and (one.invalid_at is None or on(day) < one.invalid_at)
                }
                assert texts(await made.records_as_of(ANN, on(day))) == held, day

        asyncio.run(story())

    def test_two_dated_conditions_on_one_field_keep_their_own_dates(self, store):
        early, late = (DateFilter(date=on(day), comparison_operator=ComparisonOperator.equals) for day in (1, 2))
        asked = SearchFilters(valid_at=[[early], [late]])
        clauses, values = edge_search_filter_query_constructor(asked, GraphProvider.FALKORDB)
        assert len({str(value) for value in values.values()}) == 1, "Graphiti got better: the trap is gone"
        assert "OR" in " ".join(clauses)

        async def story():
            made = store()
            await made.remember(ANN, [Fact(text=POSTGRES, valid_at=on(0), invalid_at=on(10))])
            await made.remember(ANN, [Fact(text=SQLITE, valid_at=on(10))])
            assert [texts(await made.records_as_of(ANN, on(day))) for day in (-1, 9, 10)] == [
                set(),
                {POSTGRES},
                {SQLITE},
            ]

        asyncio.run(story())

    def test_superseded_facts_are_not_found_though_graphitis_search_finds_them(self, store, graphiti):
        async def story():
            made = store()
            async with graphiti() as one:
                await saved(one.driver, POSTGRES, invalid_at=on(10), expired_at=on(11))
                await saved(one.driver, SQLITE, valid_at=on(10))
                found = await one.search("service stores data", group_ids=["ann"])
            assert texts_of(found) == {POSTGRES, SQLITE}, "Graphiti got better: the trap is gone"
            assert texts(await made.search(ANN, "service stores data")) == {SQLITE}
            assert texts(await made.search(ANN, "service stores data", at=on(9))) == {POSTGRES}

        asyncio.run(story())

    def test_a_fact_whose_end_lies_ahead_holds_though_graphiti_marks_it_expired(self, store, graphiti):
        async def story():
            made, now = store(), datetime.now(UTC)
            async with graphiti() as one:
                # What `add_episode` stores of "the licence runs until next year".
                await saved(one.driver, "The licence runs", invalid_at=now + 365 * DAY, expired_at=now)
            assert texts(await made.search(ANN, "licence")) == {"The licence runs"}
            assert ANN in await made.owners()

        asyncio.run(story())

    def test_times_in_other_zones_compare_as_times_not_as_text(self, store, graphiti):
        async def story():
            made = store()
            async with graphiti() as one:
                edge = await saved(one.driver, "Moved to Moscow")
                query = "MATCH ()-[e {uuid: $id}]->() SET e.valid_at = '2024-03-01T02:00:00+03:00'"  # 23:00 in UTC
                await one.driver.execute_query(query, id=edge.uuid)
            before, after = datetime(2024, 2, 29, 22, 59, tzinfo=UTC), datetime(2024, 2, 29, 23, 0, tzinfo=UTC)
            assert texts(await made.records_as_of(ANN, before)) == set()
            assert texts(await made.records_as_of(ANN, after)) == {"Moved to Moscow"}

        asyncio.run(story())

    def test_paging_goes_on_though_graphitis_cursor_stands_still(self, store, graphiti):
        async def story():
            made = store()
            await made.remember(ANN, [Fact(text=f"Note {number}", valid_at=T0) for number in range(7)])
            async with graphiti() as one:
                first = await EntityEdge.get_by_group_ids(one.driver, ["ann"], limit=3)
                second = await EntityEdge.get_by_group_ids(one.driver, ["ann"], limit=3, uuid_cursor=first[-1].uuid)
            assert {edge.uuid for edge in first} & {edge.uuid for edge in second}, "FalkorDB got better"
            page, seen = await made.records(ANN, limit=3), []
            while True:
                seen += [record.ref.id for record in page.records]
                if page.after is None:
                    break
                page = await made.records(ANN, after=page.after, limit=3)
            assert len(seen) == len(set(seen)) == 7

        asyncio.run(story())


def texts_of(edges):
    return {edge.fact for edge in edges}


class TestGraphs:
    def test_no_read_makes_a_graph_though_graphitis_search_does(self, store, graphiti, graphs, falkor):
        unknown = f"nobody{uuid.uuid4().hex[:8]}"

        async def graphitis():
            async with graphiti(stock=True) as one:
                await one.search("anything", group_ids=[unknown])

        async def ours():
            made, owner = store(graph=f"{unknown}2"), Entity("user", unknown)
            assert await made.search(owner, "anything") == []
            assert await made.records_as_of(owner, T0) == (await made.records(owner)).records == []
            assert await made.owners() == []
            assert (await made.health()).condition == "empty"
            assert await made.retract(["update:1"]) == 0
            assert await made.read([MemoryRef(backend="graphiti", id="unknown")]) == []
            assert await made.erase([MemoryRef(backend="graphiti", id="unknown")]) == 0

        asyncio.run(graphitis())
        before = graphs()
        assert unknown in before, "Graphiti got better: the trap is gone"
        asyncio.run(ours())
        assert graphs() == before
        drop(falkor, unknown)

    def test_all_owners_share_one_graph_and_see_only_their_own(self, store, graphs, graph):
        async def story():
            made = store()
            for owner in (ANN, BOB):
                await made.remember(owner, [Fact(text=f"Note of {owner.id}")])
            await made.write([derived(ANN), derived(BOB)])
            assert await made.owners() == [ANN, BOB]
            assert texts((await made.records(ANN)).records) == {"Note of ann"}

        before = graphs()
        asyncio.run(story())
        assert graphs() == sorted([*before, graph])

    def test_a_refused_batch_leaves_no_graph(self, store, graphs):
        from collab_layer.errors import InputError

        async def story():
            made = store()
            with pytest.raises(InputError):
                await made.write([derived(ANN), derived(ANN, "x" * 100_001)])

        before = graphs()
        asyncio.run(story())
        assert graphs() == before

    def test_a_fact_goes_where_its_group_is_read_though_graphitis_triplet_does_not(
        self, store, graphiti, graphs, falkor
    ):
        """With Graphiti's own driver a triplet lands in the driver's graph and is not found in its group."""
        group = f"carl{uuid.uuid4().hex[:8]}"

        async def story():
            async with graphiti(stock=True) as one:
                nodes = [EntityNode(name=name, group_id=group) for name in ("Carl", "tea")]
                edge = EntityEdge(
                    group_id=group, source_node_uuid=nodes[0].uuid, target_node_uuid=nodes[1].uuid, created_at=T0,
                    name="LIKES", fact="Carl likes tea",
                )  # fmt: skip
                await one.add_triplet(nodes[0], edge, nodes[1])
                assert await one.search("Carl likes tea", group_ids=[group]) == [], "Graphiti got better"
            made = store()
            assert texts(await made.search(Entity("user", group), "likes tea")) == {"Carl likes tea"}
            await made.remember(Entity("user", group), [Fact(text="Carl likes coffee")])
            async with graphiti() as shared:
                found = await shared.search("Carl likes coffee", group_ids=[group])
                assert "Carl likes coffee" in texts_of(found)

        asyncio.run(story())
        drop(falkor, group)

    @pytest.mark.parametrize("name", ["alice@example.org", "a b".replace(" ", "."), "Анна", "100%"])
    def test_owners_whose_names_graphiti_refuses_have_groups_all_the_same(self, store, name):
        with pytest.raises(GroupIdValidationError):
            validate_group_id(f"user:{name}")

        async def story():
            made, owner = store(), Entity("user", name)
            await made.remember(owner, [Fact(text="Likes tea")])
            await made.write([derived(owner)])
            assert await made.owners() == [owner]

        asyncio.run(story())

    def test_graphitis_own_search_finds_what_is_written_though_not_in_groups_with_a_hyphen(self, store, graphiti):
        """Its full-text query for a group with a hyphen matches nothing, so none of our groups adds one."""

        async def story():
            made, coder = store(), Entity("agent", "coder")
            await made.write([derived(coder, "Pin the genproto module")])
            async with graphiti() as one:
                await saved(one.driver, "Pin the genproto module", group="a-hyphen")
                ops = one.driver.search_ops
                for group, count in (("a-hyphen", 0), (derived_group(coder), 1)):
                    found = await ops.edge_fulltext_search(one.driver, "genproto", SearchFilters(), [group], 10)
                    assert len(found) == count, group
            assert texts(await made.search(Entity("user", "a-hyphen"), "genproto")) == {"Pin the genproto module"}

        asyncio.run(story())


class TestWriting:
    def test_ending_a_fact_keeps_its_embedding_though_saving_it_again_wipes_it(self, store, graphiti):
        async def story():
            made = store()
            async with graphiti() as one:
                kept, wiped = [await saved(one.driver, text) for text in (POSTGRES, SQLITE)]
                read = await EntityEdge.get_by_uuid(one.driver, wiped.uuid)
                read.invalid_at = on(5)
                await read.save(one.driver)
                await read.load_fact_embedding(one.driver)
                assert read.fact_embedding is None, "Graphiti got better: the trap is gone"
                (ref,) = [record.ref for record in await made.records_as_of(ANN, on(6))]
                assert await made.end([ref], on(5)) == 1
                await kept.load_fact_embedding(one.driver)
                assert len(kept.fact_embedding) == 384
            (ended, _) = sorted((await made.records(ANN)).records, key=lambda record: record.text)
            assert ended.valid_to == on(5)

        asyncio.run(story())

    def test_the_same_words_in_two_spans_are_two_facts_though_a_triplet_loses_the_second(self, store, graphiti):
        def spans(edges):
            return sorted(str(edge.valid_at) for edge in edges)

        async def story():
            async with graphiti() as one:
                nodes = [EntityNode(name=name, group_id="bob") for name in ("Bob", "tea")]
                for begin, end in ((on(0), on(5)), (on(10), on(15))):
                    edge = EntityEdge(
                        group_id="bob", source_node_uuid=nodes[0].uuid, target_node_uuid=nodes[1].uuid,
                        created_at=T0, name="LIKES", fact="Bob likes tea", valid_at=begin, invalid_at=end,
                    )  # fmt: skip
                    await one.add_triplet(nodes[0], edge, nodes[1])
                assert len(spans(await EntityEdge.get_by_group_ids(one.driver, ["bob"]))) == 1, "Graphiti got better"
            made = store()
            stated = [Fact(text="Ann likes tea", valid_at=on(day), invalid_at=on(day + 5)) for day in (0, 10)]
            await made.remember(ANN, [*stated, *stated])
            held = [len(await made.records_as_of(ANN, on(day))) for day in (2, 7, 12, 17)]
            assert held == [1, 0, 1, 0]

        asyncio.run(story())

    def test_attributes_cannot_overwrite_a_fact_though_graphitis_namespace_lets_them(self, store, graphiti):
        async def story():
            async with graphiti() as one:
                edge = await saved(one.driver, POSTGRES, group="bob")
                edge.attributes = {"fact": "Something else"}
                await one.edges.entity.save(edge)
                read = await EntityEdge.get_by_uuid(one.driver, edge.uuid)
                assert read.fact == "Something else", "Graphiti got better: the trap is gone"

        asyncio.run(story())
        from collab_layer.errors import InputError

        for name in ("fact", "group_id", "uuid", "collab_derived"):
            with pytest.raises(InputError, match=name):
                Fact(text=SQLITE, attributes={name: "x"})

    def test_derived_items_cost_no_model_call_and_change_no_fact_of_the_owner(self, store, graphiti):
        async def story():
            made, model = store(embedder=HashEmbedder()), NoModel()
            async with graphiti(model=model) as one:
                await saved(one.driver, POSTGRES)
                before = await everything(one, "ann")
                await made.write([derived(ANN, POSTGRES), derived(ANN, SQLITE)])
                await made.retract(["update:none"])
                assert await everything(one, "ann") == before
            assert model.calls == 0

        asyncio.run(story())

    def test_writers_at_the_same_time_make_one_node_each_though_triplets_make_many(self, store, graphiti):
        async def triplet(one, number):
            nodes = [EntityNode(name=name, group_id="team_a") for name in ("Per", f"thing {number}")]
            edge = EntityEdge(
                group_id="team_a", source_node_uuid=nodes[0].uuid, target_node_uuid=nodes[1].uuid, created_at=T0,
                name="USES", fact=f"Per uses thing {number}",
            )  # fmt: skip
            await one.add_triplet(nodes[0], edge, nodes[1])

        async def story():
            async with graphiti() as one:
                await asyncio.gather(*(triplet(one, number) for number in range(5)))
                found = await EntityNode.get_by_group_ids(one.driver, ["team_a"])
                assert sum(node.name == "Per" for node in found) > 1, "Graphiti got better: the trap is gone"
            stores = [store() for _ in range(4)]
            updates = [derived(ANN, f"Peers advise {number}") for number in range(5)]
            await asyncio.gather(*(one.write(updates) for one in stores for _ in range(3)))
            async with graphiti() as one:
                nodes = await EntityNode.get_by_group_ids(one.driver, [derived_group(ANN)])
                edges = await EntityEdge.get_by_group_ids(one.driver, [derived_group(ANN)])
            assert sorted(node.name for node in nodes) == ["peers", "user:ann"]
            assert len(edges) == 5

        asyncio.run(story())

    def test_the_same_key_with_other_links_is_still_one_fact(self, store, graphiti):
        """`MERGE` between two nodes stores a uuid again when it hangs between two others."""

        async def story():
            made, update = store(), derived(ANN)
            first = await made.write([update])
            moved = update.model_copy(update={"links": (Entity("tool", "pip"),), "owner": BOB})
            assert await made.write([moved]) == first
            async with graphiti() as one:
                found, _, _ = await one.driver.execute_query(
                    "MATCH ()-[e:RELATES_TO {uuid: $id}]->() RETURN e.group_id AS g", id=first[0].native_id
                )
            assert [row["g"] for row in found] == [derived_group(ANN)]

        asyncio.run(story())


async def everything(one, group):
    found, _, _ = await one.driver.execute_query(
        "MATCH (a {group_id: $g})-[e {group_id: $g}]->(b) RETURN properties(a), properties(e), properties(b)", g=group
    )
    return found


class TestClients:
    def test_one_store_serves_many_loops_though_a_graphiti_does_not(self, store, graphiti, falkor):
        made = store()
        asyncio.run(made.remember(ANN, [Fact(text=POSTGRES)]))
        for _ in range(3):
            assert texts(asyncio.run(made.search(ANN, "PostgreSQL"))) == {POSTGRES}

        from collab_layer_graphiti import SharedFalkorDriver

        driver = SharedFalkorDriver(host="127.0.0.1", port=falkor.port, database=made._graph._place.graph)

        async def use():
            await driver.execute_query("MATCH (n) RETURN count(n)")

        with asyncio.Runner() as first, asyncio.Runner() as second:
            first.run(use())
            with pytest.raises(RuntimeError, match="loop"):
                second.run(use())
            first.run(driver.close())

    def test_reads_send_no_embeddings(self, store):
        async def story():
            made = store(embedder=HashEmbedder())
            await made.remember(ANN, [Fact(text=POSTGRES)])
            from collab_layer_graphiti import cypher

            for query in (cypher.PAGE, cypher.AS_OF):
                values = {"after": "", "limit": 9, "early": T0, "late": datetime.now(UTC) + DAY}
                (row,) = await made._graph.ask(query, group="ann", **values)
                assert not any(isinstance(value, list) and len(value) > 64 for value in row.values())
                assert "fact_embedding" not in row

        asyncio.run(story())

    def test_k_is_a_limit_in_all(self, store):
        async def story():
            made = store(embedder=HashEmbedder())
            await made.remember(ANN, [Fact(text=f"Note {number}") for number in range(9)])
            assert len(await made.search(ANN, "note", k=1)) == 1
            assert await made.search(ANN, "note", k=0) == []

        asyncio.run(story())

    def test_a_failing_query_writes_no_memory_into_the_log_though_graphitis_driver_does(self, store, graphiti, caplog):
        from collab_layer.errors import BackendError

        caplog.set_level(logging.DEBUG)

        async def graphitis():
            async with graphiti() as one:
                with pytest.raises(Exception, match="primitive"):
                    await one.driver.execute_query("CREATE (n) SET n.a = $a", a={"deep": {"word": "XYZZY"}})

        async def ours():
            made = store()
            with pytest.raises(BackendError) as caught:
                await made._graph.tell("CREATE (n) SET n.a = $a", a={"deep": {"word": "XYZZY"}})
            assert "XYZZY" not in str(caught.value)

        asyncio.run(graphitis())
        assert "XYZZY" in caplog.text, "Graphiti got better: the trap is gone"
        caplog.clear()
        asyncio.run(ours())
        assert "XYZZY" not in caplog.text

    def test_nothing_is_sent_home(self):
        """Graphiti reports each `Graphiti(...)` that is made; the store makes none."""
        from collab_layer_graphiti import backend, client, driver, embedder

        assert not any("Graphiti" in vars(module) for module in (backend, client, driver, embedder))


def drop(falkor, name):
    import redis

    with redis.Redis(port=falkor.port) as client:
        client.delete(name, f"telemetry{{{name}}}")


def test_the_group_of_a_plain_user_is_its_name():
    assert group_of(ANN) == "ann"
