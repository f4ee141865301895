"""Whatever is passed in or wrong with the database: a typed error that says what to do, and nothing half-written."""

from __future__ import annotations

import asyncio
import inspect
import math
import os
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from collab_layer import AsyncCollabLayer, CollabLayer, Interaction, MemoryRef
from collab_layer.config import Settings
from collab_layer.errors import (
    CollabError,
    InputError,
    InvalidEntityError,
    LayerClosedError,
    NewerSchemaError,
    NotPermittedError,
    PluginError,
    StoreBusyError,
    StoreError,
    StoreReadOnlyError,
    StoreUnavailableError,
    UnknownIdError,
    UnsupportedError,
)
from collab_layer.graph.engine import parse_url
from collab_layer.ports.backend import Can, Change
from collab_layer.testing import InMemoryBackend

ALONE = Settings(worker=False)
NAIVE = datetime(2026, 5, 1)
MEGABYTE = "word " * 200_000
NUL, HALF = "\x00", "\ud800"

BAD_ENTITIES = {
    "no kind": "alice",
    "no id": "user:",
    "empty": "",
    "an upper-case kind": "User:alice",
    "a space": "user:alice smith",
    "a tab": "user:alice\t",
    "a star": "user:*",
    "a slash": "user:a/b",
    "NUL": f"user:a{NUL}b",
    "an invisible turn": "user:a\u202eb",
    "half a surrogate": f"user:a{HALF}",
    "too long": "user:" + "a" * 257,
    "a megabyte": "user:" + "a" * 1_000_000,
    "None": None,
    "a number": 7,
}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def layer(request, tmp_path_factory) -> Iterator[CollabLayer]:
    """One layer for every input that must leave no trace, so that a trace of any shows."""
    if request.param == "sqlite":
        url = str(tmp_path_factory.mktemp("bad") / "collab.db")
    else:
        server = request.getfixturevalue("postgres")
        url = server.create_database()
    with CollabLayer.open(url, settings=ALONE) as opened:
        yield opened
    if request.param == "postgres":
        server.drop_database(url)


def refused(layer: CollabLayer, kind: type[CollabError], call: Callable[[], object]) -> CollabError:
    """The error of a call that must fail with it, and leave the database as it was."""
    before = layer.health().counts
    with pytest.raises(kind) as caught:
        call()
    assert layer.health().counts == before, "something was half-written"
    assert str(caught.value).encode(), "the message cannot be printed"
    assert len(str(caught.value)) < 1000, "the message repeats what was passed in"
    return caught.value


@pytest.mark.parametrize("what", sorted(BAD_ENTITIES))
def test_an_unusable_entity_is_named(layer, what):
    given = BAD_ENTITIES[what]
    for call in (
        lambda: layer.observe(given if isinstance(given, str) else [given]),
        lambda: layer.observe("user:ann", given) if given is not None else layer.neighbors(given),
        lambda: layer.observe("user:ann", links=[given]),
        lambda: layer.neighbors(given),
        lambda: layer.context(given),
        lambda: layer.rank(given, ["item:dune"]),
        lambda: layer.rank("user:ann", [given]),
        lambda: layer.grant(given, "tenant"),
        lambda: layer.as_(given),
        lambda: layer.opt_out(given),
    ):
        refused(layer, InputError, call)


def test_the_message_shows_how_an_entity_is_written(layer):
    error = refused(layer, InvalidEntityError, lambda: layer.observe("alice", "item:dune"))
    assert "`alice`" in str(error)
    assert "user:alice" in str(error)


BAD_PARTS = {
    "an empty text": {"text": ""},
    "a blank text": {"text": " \n\t"},
    "a megabyte of text": {"text": MEGABYTE},
    "NUL in the text": {"text": f"a{NUL}b"},
    "half a surrogate in the text": {"text": f"a{HALF}b"},
    "text that is none": {"text": 7},
    "a blank outcome": {"outcome": " "},
    "a megabyte of outcome": {"outcome": MEGABYTE},
    "no number": {"weight": math.nan},
    "infinity": {"weight": math.inf},
    "minus infinity": {"weight": -math.inf},
    "less than nothing": {"weight": -1.0},
    "a huge weight": {"weight": 1e9},
    "a weight in words": {"weight": "much"},
    "a naive time": {"at": NAIVE},
    "a time in words": {"at": "yesterday"},
    "a naive time as text": {"at": "2026-05-01T12:00:00"},
    "a number for a time": {"at": 1.5},
    "a verb with a space": {"verb": "really liked"},
    "no verb": {"verb": ""},
    "a long verb": {"verb": "a" * 33},
    "too many links": {"links": [f"item:i{n}" for n in range(65)]},
    "a long key": {"key": "k" * 513},
    "NUL in the key": {"key": f"a{NUL}b"},
    "half a surrogate in the key": {"key": f"a{HALF}b"},
}


@pytest.mark.parametrize("what", sorted(BAD_PARTS))
def test_an_unusable_part_of_an_interaction_is_refused(layer, what):
    refused(layer, InputError, lambda: layer.observe("user:ann", "item:dune", **BAD_PARTS[what]))


def test_a_text_that_is_too_long_says_how_long_it_may_be(layer):
    error = refused(layer, InputError, lambda: layer.observe("user:ann", text=MEGABYTE))
    assert "1000000 characters" in str(error)
    assert "100000" in str(error)
    assert "split" in str(error)


def test_the_longest_text_is_taken(layer):
    text = ("word " * 20_000).strip()
    (id_,) = layer.observe("user:longwinded", text=text)
    layer.drain()
    assert layer.explain(id_).kind == "interaction"
    layer.forget("user:longwinded")


def test_an_empty_list_of_interactions_is_nothing(layer):
    before = layer.health().counts
    assert layer.observe([]) == []
    assert layer.health().counts == before


@pytest.mark.parametrize("batch", [["user:ann"], [{"actor": "user:ann"}], [None], 7])
def test_a_batch_of_something_else_is_refused(layer, batch):
    refused(layer, InputError, lambda: layer.observe(batch))


def test_too_large_a_batch_says_how_large_it_may_be(layer):
    one = Interaction(actor="user:ann", target="item:dune")
    error = refused(layer, InputError, lambda: layer.observe([one] * 50_001))
    assert "50000" in str(error)


def test_a_batch_with_one_foreign_interaction_is_refused_as_a_whole(layer):
    batch = [Interaction(actor="user:ann", target="item:a"), Interaction(actor="user:bob", target="item:b")]
    error = refused(layer, NotPermittedError, lambda: layer.as_("user:ann").observe(batch))
    assert "user:bob" in str(error)


@pytest.mark.parametrize("part", ["backend", "id", "version"])
@pytest.mark.parametrize("bad", [f"a{NUL}b", f"a{HALF}b", MEGABYTE], ids=["NUL", "half a surrogate", "a megabyte"])
def test_an_unusable_ref_cannot_be_made(part, bad):
    with pytest.raises(InputError, match=r"remove it|Unicode|split it"):
        MemoryRef(**{"backend": "memory", "id": "m1", part: bad})


def test_a_ref_of_nothing_is_said_to_be_unknown(layer):
    refused(layer, UnknownIdError, lambda: layer.forget(MemoryRef(backend="memory", id="' OR 1=1 --")))


GONE = Change(MemoryRef(backend="memory", id="m1"), None)
BAD_QUESTIONS = {
    "no neighbours asked for": lambda layer: layer.neighbors("user:ann", k=0),
    "a negative k": lambda layer: layer.neighbors("user:ann", k=-1),
    "a huge k": lambda layer: layer.neighbors("user:ann", k=10**9),
    "no budget": lambda layer: layer.context("user:ann", budget_tokens=0),
    "a huge budget": lambda layer: layer.context("user:ann", budget_tokens=10**9),
    "a budget that is no number": lambda layer: layer.context("user:ann", budget_tokens=math.nan),
    "a megabyte of query": lambda layer: layer.context("user:ann", MEGABYTE),
    "NUL in the query": lambda layer: layer.context("user:ann", f"a{NUL}b"),
    "half a surrogate in the query": lambda layer: layer.neighbors("user:ann", f"a{HALF}b"),
    "a naive as_of": lambda layer: layer.context("user:ann", as_of=NAIVE),
    "an as_of in words": lambda layer: layer.neighbors("user:ann", as_of="last week"),
    "NUL in the instruction": lambda layer: layer.rank("user:ann", ["item:a"], f"a{NUL}b"),
    "candidates as one text": lambda layer: layer.rank("user:ann", "item:a"),
    "an unknown level": lambda layer: layer.grant("user:ann", "tenant", level="everything"),
    "an unknown audience": lambda layer: layer.grant("user:ann", "everybody"),
    "a grant that has ended": lambda layer: layer.grant(
        "user:ann", "tenant", until=datetime.now(UTC) - timedelta(hours=1)
    ),
    "a grant with a naive end": lambda layer: layer.grant("user:ann", "tenant", until=NAIVE + timedelta(days=9999)),
    "NUL in the purpose": lambda layer: layer.grant("user:ann", "tenant", purpose=f"a{NUL}b"),
    "half a surrogate in the purpose": lambda layer: layer.grant("user:ann", "tenant", purpose=HALF),
    "weights that are no numbers": lambda layer: layer.set_weights({"own": math.nan}),
    "negative weights": lambda layer: layer.set_weights({"own": -1.0}),
    "a tenant with a space": lambda layer: layer.for_tenant("a b"),
    "a tenant with half a surrogate": lambda layer: layer.for_tenant(f"a{HALF}"),
    "no tenant": lambda layer: layer.for_tenant(""),
    "a long tenant": lambda layer: layer.for_tenant("t" * 129),
    "NUL in the name of a store that changed": lambda layer: layer.observe_changes(f"a{NUL}b", [GONE]),
    "half a surrogate in the name of one": lambda layer: layer.observe_changes(HALF, [GONE]),
    "a store that cannot list its owners": lambda layer: layer.index(InMemoryBackend("plain", can=())),
}


@pytest.mark.parametrize("what", sorted(BAD_QUESTIONS))
def test_an_unusable_question_is_refused(layer, what):
    refused(layer, InputError, lambda: BAD_QUESTIONS[what](layer))


UNKNOWN = {
    "nobody": "user:nobody-ever",
    "an interaction": "i1234",
    "a number beyond all": "i" + "f" * 40,
    "a card": "c1234",
    "a huge card": "c" + "f" * 40,
    "a derived item": "d" + "0" * 24,
    "a facet": "facet-1",
    "SQL": "d'; DROP TABLE interactions; --",
    "nothing": "",
    "a quote": "'",
    "Russian": "неизвестно",
    "NUL": f"d{NUL}",
    "half a surrogate": f"d{HALF}",
    "a megabyte": MEGABYTE,
}


@pytest.mark.parametrize("what", sorted(UNKNOWN))
@pytest.mark.parametrize("verb", ["forget", "explain", "derived", "revoke"])
def test_an_unknown_id_is_said_to_be_unknown(layer, verb, what):
    error = refused(layer, InputError, lambda: getattr(layer, verb)(UNKNOWN[what]))
    if what in ("an interaction", "a card", "a derived item", "nobody"):
        assert isinstance(error, UnknownIdError)


def test_an_entity_nobody_has_seen_is_said_to_be_unknown(layer):
    refused(layer, UnknownIdError, lambda: layer.context("user:nobody-ever"))


def test_a_broken_promise_is_refused_when_a_store_is_attached(layer):
    class Promising(InMemoryBackend):
        can = frozenset({Can.IF_MATCH})

    error = refused(layer, PluginError, lambda: layer.attach(Promising()))
    assert "write_if_match" in str(error)


def test_delivering_to_a_store_that_cannot_be_written_is_refused(layer):
    refused(layer, UnsupportedError, lambda: layer.attach(InMemoryBackend(can=()), deliver=True))


# -- the database -----------------------------------------------------------------------

BAD_URLS = {
    "memory": ":memory:",
    "memory by URL": "sqlite://",
    "another engine": "mysql://localhost/collab",
    "no engine": "gopher://localhost/collab",
    "nothing": "",
    "NUL": "a\x00b",
}


@pytest.mark.parametrize("what", sorted(BAD_URLS))
def test_an_unusable_url_is_refused(what):
    with pytest.raises(InputError):
        CollabLayer.open(BAD_URLS[what], settings=ALONE)


def test_a_server_that_is_not_there_is_unavailable_and_the_password_stays_secret():
    with pytest.raises(StoreUnavailableError) as caught:
        CollabLayer.open("postgresql://someone:secret-word@127.0.0.1:1/collab", settings=ALONE)
    assert caught.value.retryable
    assert "secret-word" not in str(caught.value)
    assert "secret-word" not in repr(vars(caught.value))


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StoreUnavailableError, match="folder") as caught:
        CollabLayer.open(str(tmp_path / "nowhere" / "collab.db"), settings=ALONE)
    assert "nowhere" in str(caught.value)
    assert not (tmp_path / "nowhere").exists()


def test_a_file_of_something_else_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes, not a database. " * 100)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a collab-layer database"):
        CollabLayer.open(str(path), settings=ALONE)
    assert path.read_bytes() == before


def test_somebody_elses_tables_are_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE interactions (mine TEXT)")
        connection.execute("INSERT INTO interactions VALUES ('precious')")
    connection.close()
    with pytest.raises(StoreError, match="something else"):
        CollabLayer.open(str(path), settings=ALONE)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT * FROM interactions").fetchall() == [("precious",)]
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    connection.close()
    assert tables == [("interactions",)]


def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(database_url, rows):
    with CollabLayer.open(database_url, settings=ALONE) as layer:
        layer.observe("user:ann", "item:dune", key="1")
    engine = create_engine(parse_url(database_url))
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(NewerSchemaError, match="upgrade collab-layer") as caught:
        CollabLayer.open(database_url, settings=ALONE)
    assert "9999" in str(caught.value)
    look = rows(database_url)
    assert look.one("SELECT version_num FROM alembic_version") == "9999"
    assert look.one("SELECT count(*) FROM interactions") == 1


@pytest.fixture
def as_somebody() -> Iterator[Callable[[], None]]:
    """Gives up root for the rest of the test, for whom no file is read-only."""
    mine = os.geteuid()
    yield lambda: os.seteuid(65534) if mine == 0 else None
    os.seteuid(mine)


def test_a_read_only_database_is_said_to_be_read_only(as_somebody):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "collab.db"
        with CollabLayer.open(str(path), settings=ALONE) as layer:
            layer.observe("user:ann", "item:dune")
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        before = path.read_bytes()
        as_somebody()
        with pytest.raises(StoreReadOnlyError, match="rights"):
            story_over(str(path))
        os.seteuid(os.getuid())
        assert path.read_bytes() == before
        Path(folder).chmod(0o755)


def story_over(url: str) -> None:
    with CollabLayer.open(url, settings=ALONE) as layer:
        layer.observe("user:ann", "item:emma")


@pytest.mark.slow
def test_a_locked_database_is_said_to_be_busy_and_works_again_afterwards(tmp_path):
    path = tmp_path / "collab.db"
    with CollabLayer.open(str(path), settings=ALONE) as layer:
        layer.observe("user:ann", "item:dune")
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError, match="try again") as caught:
            layer.observe("user:ann", "item:emma")
        assert caught.value.retryable
        assert layer.health().counts["interactions"] == 1, "reading goes on while somebody else writes"
        holder.execute("ROLLBACK")
        holder.close()
        layer.observe("user:ann", "item:emma")
        assert layer.health().counts["interactions"] == 2


# -- a closed layer -----------------------------------------------------------------------

ARGUMENTS = {
    "for_tenant": ("other",),
    "attach": (InMemoryBackend(),),
    "observe": ("user:ann", "item:dune"),
    "observe_changes": ("memory", []),
    "index": (InMemoryBackend(),),
    "reconcile": (InMemoryBackend(),),
    "neighbors": ("user:ann",),
    "context": ("user:ann",),
    "rank": ("user:ann", ["item:dune"]),
    "explain": ("i1",),
    "derived": ("d1",),
    "grant": ("user:ann", "tenant"),
    "opt_out": ("user:ann",),
    "revoke": ("g1",),
    "forget": ("user:ann",),
    "set_weights": ({},),
    "answer": ("user:ann", "Why?"),
    "changes": ("user:ann", datetime(2026, 5, 1, tzinfo=UTC)),
    "deliver": ("user:ann",),
    "compare_rules": ("overlap",),
    "use_rules": ("overlap",),
    "open_with": ("collab_x",),
    "issue_token": ("user:ann",),
    "revoke_token": ("t1",),
    "receipt": ("r1",),
    "release": ("c1",),
    "drop_quarantined": ("c1",),
    "publish": ("user:ann", "The gateway is fixed", "tenant"),
    "alias": ("user:ann", "user:anna"),
    "unalias": ("user:ann",),
    "forget_influence": ("user:ann",),
    "unblock": ("user:ann",),
    "import_bundle": (b"{}",),
    "revoke_bundle": ("b1",),
}
HARMLESS = {"open", "as_", "tenant", "principal", "plugins", "embedder", "close", "aclose"}


def verbs(cls: type) -> list[str]:
    return sorted(name for name in vars(cls) if not name.startswith("_") and name not in HARMLESS)


def test_every_verb_of_a_closed_layer_says_so(tmp_path):
    layer = CollabLayer.open(str(tmp_path / "collab.db"), settings=ALONE)
    layer.close()
    layer.close()
    for verb in verbs(CollabLayer):
        with pytest.raises(LayerClosedError, match="open it again"):
            getattr(layer, verb)(*ARGUMENTS.get(verb, ()))


def test_every_verb_of_a_closed_async_layer_says_so(tmp_path):
    async def story() -> None:
        layer = await AsyncCollabLayer.open(str(tmp_path / "collab.db"), settings=ALONE)
        await layer.aclose()
        await layer.aclose()
        for verb in verbs(AsyncCollabLayer):
            with pytest.raises(LayerClosedError, match="open it again"):
                await called(layer, verb)

    asyncio.run(story())


async def called(layer: AsyncCollabLayer, verb: str) -> None:
    answer = getattr(layer, verb)(*ARGUMENTS.get(verb, ()))
    if inspect.isawaitable(answer):
        await answer


def test_an_error_never_shows_where_the_files_of_the_library_lie(layer):
    error = refused(layer, InputError, lambda: layer.observe("user:ann", weight=math.nan))
    assert not re.search(r"site-packages|\.py\b", str(error))
