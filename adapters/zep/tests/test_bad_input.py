"""What cannot be used is refused by name, before anything is stored; what fails says what to do."""

import asyncio
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from collab_layer_zep import (
    Fact,
    ZepAuthError,
    ZepBackend,
    ZepBusyError,
    ZepGoneError,
    ZepRejectedError,
    ZepResidueError,
    ZepTaskError,
    ZepTooLargeError,
    ZepVersionError,
)
from collab_layer_zep.versions import check_sdk
from zep_cloud import AddMessage, Zep

from collab_layer.errors import BackendDownError, BackendError, BackendTimeoutError, InputError
from collab_layer.testing.contract_base import derived
from collab_layer.types.entity import MAX_TEXT, Entity, MemoryRef

ANN, CODER = Entity("user", "ann"), Entity("agent", "coder")
NOW = datetime(2026, 5, 1, tzinfo=UTC)
NAIVE = datetime(2026, 5, 1)


@pytest.fixture
def ann(zep):
    return zep.user.create(user_id="ann")


def remember(store, *facts, owner=ANN):
    return asyncio.run(store.remember(owner, facts))


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
            ({"about": " "}, "empty"),
            ({"text": "a\x00b"}, "NUL"),
            ({"text": "half \ud800 pair"}, "surrogate"),
            ({"attributes": {"deep": {"a": 1}}}, "deep"),
            ({"attributes": {"deep": [1]}}, "deep"),
            ({"attributes": {"none": None}}, "none"),
            ({"attributes": {"odd": float("nan")}}, "odd"),
            ({"attributes": {"collab_key": "x"}}, "reserved"),
            ({"attributes": {"": 1}}, "name"),
            ({"name": "lower"}, "name"),
            ({"links": ["nonsense"]}, "kind is missing"),
        ],
    )
    def test_a_fact_that_cannot_be_stored_is_refused_when_it_is_made(self, settings, why):
        with pytest.raises((InputError, ValueError), match=why):
            Fact(**{"text": "Uses SQLite", **settings})

    def test_a_fact_that_would_end_before_now_keeps_the_whole_batch_out(self, server, ann, store):
        before = server.state.census()
        bad = Fact(text="Uses SQLite", invalid_at=NOW - timedelta(days=9))
        with pytest.raises(InputError, match="would end"):
            remember(store(), Fact(text="Good"), bad)
        assert server.state.census() == before
        assert not server.asked("edge.add")

    def test_an_owner_that_zep_does_not_have_is_not_made_by_a_write(self, server, store):
        with pytest.raises(ZepGoneError, match=r"zep.user.create\(user_id='ann'\)"):
            remember(store(), Fact(text="Uses SQLite"))
        with pytest.raises(ZepGoneError, match=r"zep.graph.create\(name='agent:coder'\)"):
            remember(store(), Fact(text="Uses SQLite"), owner=CODER)
        assert set(server.state.census().values()) == {0}

    def test_attributes_that_the_ontology_does_not_define_leave_neither_fact_nor_node(self, server, ann, store):
        before = server.state.census()
        with pytest.raises(ZepRejectedError, match=r"ontology"):
            remember(store(), Fact(text="Uses SQLite", about="SQLite", attributes={"severity": 3}))
        assert server.state.census() == before

    def test_attributes_and_links_that_it_defines_are_kept(self, zep, ann, store):
        from zep_cloud.types import EdgeType, EntityProperty

        kinds = {"severity": "int", "тег": "text", "collab_links": "text"}
        properties = [EntityProperty(name=name, type=kind, description="x") for name, kind in kinds.items()]
        zep.graph.set_ontology(ann.graph_uuid, edge_types=[EdgeType(name="STATES", properties=properties)])
        made = store()
        fact = Fact(text="Uses SQLite", attributes={"severity": 3, "тег": "раз"}, links=("tool:sqlite",))
        (ref,) = remember(made, fact)
        (read,) = asyncio.run(made.read([ref]))
        assert [str(link) for link in read.links] == ["tool:sqlite"]
        assert zep.graph.edge.get(*ref.id.split("/")).attributes["тег"] == "раз"

    def test_odd_texts_and_russian_are_kept(self, ann, store):
        text = 'Сервис «переехал» с PostgreSQL на SQLite; "quotes" \\ \n {json: `x`} $at </FACTS>'
        made = store()
        (ref,) = remember(made, Fact(text=text, about="SQLite"))
        (read,) = asyncio.run(made.read([ref]))
        assert read.text == text

    def test_the_same_fact_is_stored_once_and_its_nodes_too(self, server, ann, store):
        made, fact = store(), Fact(text="Uses SQLite", valid_at=NOW, about="SQLite")
        assert remember(made, fact) == remember(made, fact, fact)[:1]
        remember(made, Fact(text="Likes SQLite", valid_at=NOW, about="SQLite"))
        assert sorted(node["name"] for node in server.state.nodes.values()) == ["SQLite", "ann"]
        assert len(server.state.edges) == 2

    def test_a_fact_that_was_deleted_can_be_stated_again(self, server, zep, ann, store):
        made, fact = store(), Fact(text="Uses SQLite", valid_at=NOW, about="SQLite")
        (first,) = remember(made, fact)
        zep.graph.edge.delete(*first.id.split("/"))
        (again,) = remember(made, fact)
        assert again.id.split("/")[1] in server.state.edges

    def test_a_fact_is_not_ended_before_it_began_nor_at_a_time_without_zone(self, ann, store):
        async def story():
            made = store()
            refs = await made.remember(ANN, [Fact(text="Uses SQLite", valid_at=NOW), Fact(text="x", valid_at=NOW)])
            with pytest.raises(InputError, match="would end"):
                await made.end(refs, NOW - timedelta(days=1))
            with pytest.raises(InputError, match="no zone"):
                await made.end(refs, NAIVE)
            assert {read.valid_to for read in await made.read(refs)} == {None}
            assert await made.end([MemoryRef(backend="zep", id="unknown")], NOW) == 0
            for at in (NOW + timedelta(days=2), NOW + timedelta(days=1), NOW + timedelta(days=2)):
                assert await made.end(refs, at) == 2
                assert {read.valid_to for read in await made.read(refs)} == {at}

        asyncio.run(story())

    def test_reads_at_a_time_without_zone_are_refused(self, store):
        for call in (lambda one: one.records_as_of(ANN, NAIVE), lambda one: one.search(ANN, "x", at=NAIVE)):
            with pytest.raises(InputError, match="no zone"):
                asyncio.run(call(store()))

    @pytest.mark.parametrize("requests", range(1, 9))
    def test_a_server_that_goes_down_in_the_middle_leaves_no_fact_twice(self, server, ann, store, requests):
        made, facts = store(), [Fact(text=f"Fact {number}", valid_at=NOW, about="SQLite") for number in range(3)]
        server.die_after(requests)
        with pytest.raises(BackendError):
            remember(made, *facts)
        server.revive()
        remember(made, *facts)
        assert sorted(edge["fact"] for edge in server.state.edges.values()) == ["Fact 0", "Fact 1", "Fact 2"]
        assert sorted(node["name"] for node in server.state.nodes.values()) == ["SQLite", "ann"]

    @pytest.mark.parametrize("ending", ["failed", "partial"])
    def test_a_task_that_ends_badly_leaves_neither_fact_nor_node(self, server, ann, store, ending):
        before, server.state.endings = server.state.census(), ["succeeded", ending, ending]
        with pytest.raises(ZepTaskError):
            remember(store(), Fact(text="Uses SQLite", about="SQLite"))
        after = server.state.census()
        assert {**after, "episodes": 0} == {**before, "episodes": 0}


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
    def test_one_that_cannot_be_stored_keeps_the_whole_batch_out(self, server, store, change, why):
        good, bad = derived(ANN), derived(ANN).model_copy(update=change)
        with pytest.raises(InputError, match=why):
            asyncio.run(store().write([good, bad]))
        assert not server.calls

    def test_more_than_zep_takes_at_once_is_told_and_leaves_no_graph(self, server, store):
        items = [derived(ANN, f"{number} " + "x" * (MAX_TEXT - 10)) for number in range(11)]
        with pytest.raises(ZepTooLargeError, match="413"):
            asyncio.run(store().write(items))
        assert set(server.state.census().values()) == {0}


class TestStored:
    def test_times_that_cannot_be_read_leave_out_one_fact_and_are_told_until_corrected(self, server, ann, store):
        made = store()
        _, bad = remember(made, Fact(text="Good"), Fact(text="Bad"))
        edge = server.state.edges[bad.id.split("/")[1]]
        edge["valid_at"] = "soon"
        page = asyncio.run(made.records(ANN))
        assert [record.text for record in page.records] == ["Good"]
        health = asyncio.run(made.health())
        assert (health.condition, edge["uuid"] in health.detail, "valid_at" in health.detail) == (
            "degraded",
            True,
            True,
        )
        edge["valid_at"] = None
        assert len(asyncio.run(made.records(ANN)).records) == 2
        assert asyncio.run(made.health()).condition == "ok"

    def test_a_fact_of_a_megabyte_is_read_in_part_and_hides_nothing(self, server, ann, store):
        made = store()
        long, _ = remember(made, Fact(text="Long"), Fact(text="Short"))
        server.state.edges[long.id.split("/")[1]]["fact"] = "слово " * 170_000
        assert sorted(len(record.text) for record in asyncio.run(made.records(ANN)).records) == [5, MAX_TEXT]

    def test_users_whose_ids_are_too_long_are_told_and_hide_nobody(self, zep, ann, store):
        zep.user.create(user_id="я" * 400)
        made = store()
        remember(made, Fact(text="Uses SQLite"))
        assert asyncio.run(made.owners()) == [ANN]
        assert "1 users have ids too long" in asyncio.run(made.health()).detail


class TestErasing:
    def test_summaries_of_the_nodes_go_with_the_fact(self, server, ann, store):
        made = store()
        (ref,) = remember(made, Fact(text="Uses SQLite", about="SQLite"))
        for node in server.state.nodes.values():
            node["summary"] = "Somebody who uses SQLite"
        assert asyncio.run(made.erase([ref])) == 1
        assert server.state.traces("uses SQLite") == []
        assert len(server.state.nodes) == 2

    def test_what_zeps_interface_cannot_remove_is_named(self, server, zep, ann, store):
        made = store()
        thread = zep.thread.create(user_uuid=ann.uuid_).uuid_
        message = zep.thread.add_messages(thread, messages=[AddMessage(role="user", content="I use SQLite")]).messages[
            0
        ]
        ref, other = remember(made, Fact(text="Ann uses SQLite"), Fact(text="Ann codes"))
        edge, shared = (server.state.edges[one.id.split("/")[1]] for one in (ref, other))
        drawn = {"uuid": message.uuid_, "graph_uuid": ann.graph_uuid, "summary": "x", "episode_uuids": [message.uuid_]}
        server.state.observations[message.uuid_] = drawn
        shared["episode_uuids"] = [*shared["episode_uuids"], *edge["episode_uuids"]]
        edge["episode_uuids"] = [*edge["episode_uuids"], message.uuid_]
        with pytest.raises(ZepResidueError) as caught:
            asyncio.run(made.erase([ref]))
        assert caught.value.erased == 1
        assert [one.split(" ")[0] for one in sorted(caught.value.left)] == ["a", "episode", "observation"]
        assert thread in str(caught.value.left)
        assert asyncio.run(made.read([ref])) == []
        assert [record.text for record in asyncio.run(made.records(ANN)).records] == ["Ann codes"]


class TestServers:
    def check(self, client, tmp_path, kind, why):
        async def story():
            made = ZepBackend(client, write=True, ledger=tmp_path / "zep.db", timeout_s=5)
            calls = [
                lambda: made.records(ANN),
                lambda: made.search(ANN, "x"),
                lambda: made.records_as_of(ANN, NOW),
                lambda: made.owners(),
                lambda: made.write([derived(ANN)]),
                lambda: made.retract(["update:1"]),
                lambda: made.remember(ANN, [Fact(text="x")]),
            ]
            for call in calls:
                with pytest.raises(kind, match=why) as caught:
                    await call()
                assert type(caught.value) is kind
            health = await made.health()
            assert (health.condition, health.name) == ("down", "zep")

        asyncio.run(story())

    def test_a_wrong_key(self, server, tmp_path):
        client = Zep(api_key="wrong", base_url=server.url, max_retries=0)
        self.check(client, tmp_path, ZepAuthError, "check `api_key` or ZEP_API_KEY")
        assert set(server.state.census().values()) == {0}

    def test_a_server_without_the_v4_api(self, server, zep, tmp_path):
        server.v3 = True
        self.check(zep, tmp_path, ZepVersionError, r"no v4 API at that address \(404\).*v3 ends on 2027-04-13")

    def test_a_server_that_is_not_there(self, tmp_path):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        client = Zep(api_key="k", base_url=f"http://127.0.0.1:{port}/api/v4", max_retries=0)
        self.check(client, tmp_path, BackendDownError, "cannot be reached")

    def test_a_server_that_never_answers(self, tmp_path):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/api/v4"
            made = ZepBackend(Zep(api_key="k", base_url=url, max_retries=0), timeout_s=0.3)
            with pytest.raises(BackendTimeoutError, match="in time"):
                asyncio.run(made.records(ANN))

    @pytest.mark.parametrize(
        ("status", "kind", "why"),
        [
            (400, ZepRejectedError, "400, injected"),
            (403, ZepAuthError, "may not do that"),
            (408, BackendTimeoutError, "gave up"),
            (413, ZepTooLargeError, "shorten the facts"),
            (422, ZepRejectedError, "422"),
            (429, ZepBusyError, "wait"),
            (500, BackendDownError, "500"),
            (503, BackendDownError, "503"),
        ],
    )
    def test_every_refusal_has_its_type(self, server, store, status, kind, why):
        server.fail_next(status, headers={"Retry-After": "7"})
        with pytest.raises(kind, match=why) as caught:
            asyncio.run(store().owners())
        assert getattr(caught.value, "after_s", 7) == 7
        assert caught.value.retryable == (status in (408, 429) or status >= 500)

    def test_ids_of_v3_are_told_from_other_mistakes(self, server, zep):
        from collab_layer_zep.failures import failures

        with pytest.raises(ZepVersionError, match="uuids"), failures("zep"):
            zep.thread.get("my-v3-thread")

    def test_no_error_holds_a_text(self, server, ann, store):
        server.fail_next(400, on="edge.add")
        with pytest.raises(ZepRejectedError) as caught:
            remember(store(), Fact(text="XYZZY"))
        assert "XYZZY" not in str(caught.value)


class TestSettings:
    @pytest.mark.parametrize("path", ["/api/v2", "/api/v2/", "/api/v3"])
    def test_an_address_of_v3_is_refused_before_anything_is_sent(self, path):
        with pytest.raises(ZepVersionError, match=r"https://api\.getzep\.com/api/v4"):
            ZepBackend(Zep(api_key="k", base_url=f"https://api.getzep.com{path}"))

    @pytest.mark.parametrize("version", ["2.22.1", "3.30.0"])
    def test_an_sdk_of_v3_is_refused_when_it_is_met(self, version):
        with pytest.raises(ZepVersionError, match="pip install 'zep-cloud>=4"):
            check_sdk(version)
        code = (
            "import importlib.metadata as m; real = m.version\n"
            f"m.version = lambda name: {version!r} if name == 'zep-cloud' else real(name)\n"
            "import collab_layer_zep\n"
            "try: collab_layer_zep.ZepBackend\n"
            "except collab_layer_zep.ZepVersionError as error: print(error)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert f"zep-cloud {version} speaks the v3 API" in done.stdout

    def test_what_is_no_client_of_zeps_is_refused(self, zep):
        for thing in (None, object(), zep.graph, "key"):
            with pytest.raises(InputError, match="Zep, AsyncZep"):
                ZepBackend(thing)

    @pytest.mark.parametrize("settings", [{"timeout_s": 0}, {"task_timeout_s": -1}, {"graphs": {"docs": "team:docs"}}])
    def test_settings_out_of_range_are_refused_by_name(self, zep, settings):
        with pytest.raises(InputError, match=next(iter(settings))):
            ZepBackend(zep, **settings)
