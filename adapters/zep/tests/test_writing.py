"""Derived items in the store: once, whole, with where they came from; also when writers race or die."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from collab_layer_zep import ZepTaskError
from collab_layer_zep.ledger import Ledger

from collab_layer.errors import BackendDownError, BackendError, BackendTimeoutError
from collab_layer.testing.contract_base import derived
from collab_layer.types.entity import Entity
from collab_layer.types.facet import FacetKind
from collab_layer.types.update import Source, Update

ANN, BOB, PIP = Entity("user", "ann"), Entity("user", "bob"), Entity("tool", "pip")
TEXT = "Закрепите версию парсера"
NOTHING = {"graphs": 0, "nodes": 0, "edges": 0, "episodes": 0}


def of_facts(server):
    return {kind: count for kind, count in server.state.census().items() if kind in NOTHING}


def edges(server):
    return list(server.state.edges.values())


def write(store, *items):
    return asyncio.run(store.write(items))


def retract(store, *keys):
    return asyncio.run(store.retract(keys))


class TestWhatIsWritten:
    def test_an_item_says_what_it_is_whose_and_where_it_came_from(self, server, zep, store):
        began, ends = (datetime.now(UTC) + timedelta(days=days) for days in (-9, 3))
        item = Update(
            id="d1", owner=ANN, kind=FacetKind.UPDATE, text=TEXT, confidence=0.5, hop=2, links=(PIP,),
            sources=(Source(id="i7", principal=BOB, weight=1.0),), at=began, expires=ends,
        )  # fmt: skip
        (receipt,) = write(store(), item)
        edge = zep.graph.edge.get(*receipt.native_id.split("/"))
        graph = zep.graph.get(edge.graph_uuid)
        assert (graph.name, graph.type) == ("collab:for:user:ann", "standard")
        assert (edge.name, edge.fact) == ("COLLAB_UPDATE", TEXT)
        assert [datetime.fromisoformat(one) for one in (edge.valid_at, edge.invalid_at)] == [began, ends]
        assert edge.attributes == {
            "collab_key": "d1", "collab_kind": "update", "collab_for": "user:ann", "collab_confidence": 0.5,
            "collab_hop": 2, "collab_sources": "i7", "collab_principals": "user:bob", "collab_links": "tool:pip",
        }  # fmt: skip
        assert sorted(node["name"] for node in server.state.nodes.values()) == ["peers", "user:ann"]
        assert [found.fact for found in zep.graph.search_edges(graph.uuid_, query="парсер")] == [TEXT]

    def test_no_language_model_is_asked_and_no_graph_of_the_owner_is_touched(self, server, zep, store):
        user = zep.user.create(user_id="ann")
        write(store(), derived(ANN))
        assert [call.body["deduplicate"] for call in server.asked("edge.add")] == [False]
        assert not server.asked("episode.add")
        assert {edge["graph_uuid"] for edge in edges(server)}.isdisjoint({user.graph_uuid})

    def test_taking_everything_back_leaves_no_graph_of_ours(self, server, store):
        made, items = store(), [derived(ANN), derived(BOB), derived(ANN)]
        write(made, *items)
        assert retract(made, *(item.id for item in items)) == 3
        assert of_facts(server) == NOTHING

    def test_taking_one_back_blanks_it_at_once_and_leaves_no_word_of_it(self, server, store):
        made, gone, kept = store(), derived(ANN, TEXT), derived(ANN, "Peers advise another thing")
        write(made, gone, kept)
        server.state.endings = ["failed"]
        with pytest.raises(ZepTaskError, match="failed"):
            retract(made, gone.id)
        (blank,) = [edge for edge in edges(server) if edge["attributes"]["collab_key"] == gone.id]
        assert (blank["fact"], set(blank["attributes"])) == ("(taken back)", {"collab_key", "collab_retracted_at"})
        assert retract(made, gone.id) == 0
        assert server.state.traces(TEXT) == []
        assert [edge["fact"] for edge in edges(server)] == [kept.text]

    def test_more_than_a_page_is_written_and_taken_back(self, server, store):
        made, items = store(), [derived(ANN, f"Peers advise {number}") for number in range(130)]
        write(made, *items)
        assert len(server.asked("edge.add")) == 2
        assert retract(made, *(item.id for item in items[:100])) == 100
        assert len(edges(server)) == 30

    def test_a_key_that_comes_twice_in_one_call_is_stored_once_as_it_came_first(self, server, store):
        item = derived(ANN, "Peers advise one")
        first, again = write(store(), item, item.model_copy(update={"text": "Peers advise another"}))
        assert first == again
        assert [edge["fact"] for edge in edges(server)] == ["Peers advise one"]

    def test_a_key_that_was_written_for_another_owner_stays_where_it_is(self, server, store):
        made, item = store(), derived(ANN)
        first = write(made, item)
        assert write(made, item.model_copy(update={"owner": BOB})) == first
        assert len(edges(server)) == len(server.state.graphs) == 1


class TestTasks:
    def test_a_write_returns_when_it_can_be_read(self, server, zep, store):
        server.state.lag_s = 0.2
        (receipt,) = write(store(), derived(ANN, TEXT))
        assert zep.graph.edge.get(*receipt.native_id.split("/")).fact == TEXT
        assert len(server.asked("task.get")) >= 2

    @pytest.mark.parametrize("ending", ["failed", "partial"])
    def test_a_write_that_zep_did_not_finish_leaves_no_graph(self, server, store, ending):
        server.state.endings = ["succeeded", ending, ending]  # the nodes, then the edges, then once more
        with pytest.raises(ZepTaskError, match=f"{ending} .worker_failed.") as caught:
            write(store(), derived(ANN))
        assert caught.value.task in server.state.tasks
        assert not caught.value.retryable
        assert of_facts(server) == NOTHING

    def test_a_task_without_end_is_a_timeout_and_the_next_try_finds_what_came_of_it(self, server, store):
        item, server.state.lag_s = derived(ANN), 0.7
        with pytest.raises(BackendTimeoutError, match="still"):
            write(store(task_timeout_s=0.1), item)
        server.state.lag_s = 0.0
        import time

        time.sleep(0.8)
        made = store()
        write(made, item)
        assert len(edges(server)) == 1
        assert retract(made, item.id) == 1
        assert of_facts(server) == NOTHING


class TestOnce:
    def test_idempotency_keys_follow_from_what_is_written(self, server, store, tmp_path):
        items, keys = [derived(ANN), derived(ANN)], []
        for number in range(2):
            server.reset()
            write(store(ledger=tmp_path / f"{number}.db"), *items)
            keys.append({call.operation: call.once for call in server.calls if call.once})
        assert keys[0]["graph.create"] == keys[1]["graph.create"]
        assert all(key.startswith("collab-") for key in keys[0].values() if "-" in key[:7])

    @pytest.mark.parametrize("operation", ["graph.create", "node.add", "edge.add"])
    def test_an_answer_that_was_lost_is_made_good_by_the_next_try(self, server, store, operation):
        made, item = store(), derived(ANN)
        server.lose_answer(operation)
        with pytest.raises(BackendDownError):
            write(made, item)
        first = write(made, item)
        assert write(made, item) == first
        assert (len(edges(server)), len(server.state.graphs), len(server.state.nodes)) == (1, 1, 2)

    @pytest.mark.parametrize("requests", range(1, 9))
    def test_a_server_that_goes_down_in_the_middle_leaves_nothing_that_the_next_write_does_not_use(
        self, server, store, requests
    ):
        made, items = store(), [derived(ANN, f"Peers advise {number}") for number in range(3)]
        server.die_after(requests)
        with pytest.raises(BackendError):
            write(made, *items)
        server.revive()
        receipts = write(made, *items)
        assert len({receipt.native_id for receipt in receipts}) == len(edges(server)) == 3
        assert (len(server.state.graphs), len(server.state.nodes)) == (1, 2)
        assert retract(made, *(item.id for item in items)) == 3
        assert of_facts(server) == NOTHING

    def test_answers_that_zep_kept_of_deleted_edges_are_not_taken_for_new_ones(self, server, store, tmp_path):
        item, other = derived(ANN), derived(ANN)
        write(store(), item, other)
        assert retract(store(ledger=tmp_path / "second.db"), item.id) == 1
        (receipt,) = write(store(ledger=tmp_path / "third.db"), item)
        assert receipt.native_id.split("/")[1] in server.state.edges
        assert len(edges(server)) == 2

    def test_a_conflict_is_told_and_not_sent_again_unseen(self, server, store):
        from collab_layer_zep import ZepConflictError

        server.fail_next(409, on="edge.add")
        with pytest.raises(ZepConflictError) as caught:
            write(store(), derived(ANN))
        assert caught.value.retryable
        assert len(server.asked("edge.add")) == 1
        assert of_facts(server) == NOTHING

    def test_a_lost_ledger_is_made_good_by_looking(self, server, store, tmp_path):
        item = derived(ANN)
        first = write(store(), item)
        made = store(ledger=tmp_path / "another.db")
        assert write(made, item) == first
        assert retract(store(ledger=tmp_path / "a-third.db"), item.id, "update:unknown") == 1
        assert of_facts(server) == NOTHING


class TestRaces:
    def test_two_ledgers_that_write_the_same_keys_end_with_each_once(self, server, store, tmp_path):
        items = [derived(ANN, f"Peers advise {number}") for number in range(4)]
        stores = [store(ledger=tmp_path / f"{number}.db") for number in range(2)]

        async def race():
            await asyncio.gather(stores[0].write(items), stores[1].write(list(reversed(items))))
            await asyncio.gather(stores[0].write(items), stores[1].write(items))

        asyncio.run(race())
        assert sorted(edge["attributes"]["collab_key"] for edge in edges(server)) == sorted(item.id for item in items)
        assert retract(stores[0], *(item.id for item in items)) == 4
        assert of_facts(server) == NOTHING

    def test_two_processes_that_write_the_same_keys_store_each_once(self, server, tmp_path):
        call = [sys.executable, "-c", WRITER, server.url, server.api_key, str(tmp_path / "zep.db")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes = [subprocess.Popen([*call, *span], **pipes) for span in (("0", "12"), ("6", "18"))]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        printed = [json.loads(process.communicate(timeout=90)[0]) for process in processes]
        assert len(edges(server)) == len(server.state.graphs) * 9 == 18
        for key in printed[0].keys() & printed[1].keys():
            assert printed[0][key] == printed[1][key]

    def test_a_writer_that_was_killed_holds_nobody_up_for_long(self, server, store, tmp_path):
        ledger = Ledger(tmp_path / "zep.db", "zep")

        async def killed():
            await ledger._claim("derived user:ann", "dead", 1)

        asyncio.run(killed())
        with sqlite3.connect(tmp_path / "zep.db") as db:
            db.execute("UPDATE claims SET until = until - 29.5")
        db.close()
        write(store(), derived(ANN))
        assert len(edges(server)) == 1


WRITER = """
import asyncio, json, sys
from collab_layer_zep import ZepBackend
from collab_layer.types.entity import Entity
from collab_layer.types.update import Source, Update
from zep_cloud import Zep

def item(n):
    source = Source(id=f"i{n}", principal=Entity("user", "bob"), weight=1)
    owner = Entity("user", f"ann{n % 2}")
    return Update(id=f"update:{n}", owner=owner, text=f"Совет {n}", confidence=0.5, sources=(source,))

url, key, ledger, first, last = sys.argv[1:]
store = ZepBackend(Zep(api_key=key, base_url=url, max_retries=0), write=True, ledger=ledger)
print("ready", flush=True)
sys.stdin.readline()
done = {}
for start in range(int(first), int(last), 3):
    for receipt in asyncio.run(store.write([item(n) for n in range(start, start + 3)])):
        done[receipt.key] = receipt.native_id
print(json.dumps(done))
"""


class TestLedger:
    def test_it_is_made_at_the_first_write_and_holds_no_words(self, store, tmp_path):
        made = store()
        asyncio.run(made.health())
        assert not (tmp_path / "zep.db").exists()
        write(made, derived(ANN, TEXT))
        held = b"".join((tmp_path / name).read_bytes() for name in os.listdir(tmp_path) if name.startswith("zep.db"))
        assert b"user:ann" in held
        assert TEXT.encode() not in held

    def test_one_that_cannot_be_used_is_named(self, server, store, tmp_path):
        for path in (tmp_path / "no" / "such" / "folder.db", tmp_path):
            with pytest.raises(BackendError, match="ledger"):
                write(store(ledger=path), derived(ANN))
        assert of_facts(server) == NOTHING

    def test_what_was_taken_back_is_forgotten(self, store, tmp_path):
        made, item = store(), derived(ANN)
        write(made, item)
        retract(made, item.id)
        with sqlite3.connect(tmp_path / "zep.db") as db:
            held = [
                db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("items", "graphs", "claims")
            ]
        db.close()
        assert held == [0, 0, 0]
