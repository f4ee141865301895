"""The wrapped object: what it was before, and what it brings from neighbours."""

import asyncio
import inspect
import json
import logging
import threading
import time

import mem0
import pytest
from collab_layer_mem0 import DerivedReadOnlyError, Memory, WildcardIdError, backend_of, collaborative
from collab_layer_mem0.testing import open_memory

from collab_layer import AsyncCollabLayer, CollabLayer, Entity
from collab_layer.errors import InputError

LESSON = "Sign-in loops after the upgrade: clear the old cookie domain."
QUERY = "sign-in loops after the upgrade"


def dumped(answer):
    return json.dumps(answer, ensure_ascii=False, sort_keys=False)


def ask(memory, owner="ann", query=QUERY, **more):
    return memory.search(query, filters={"user_id": owner}, **more)


def is_bares(answer, ask_bare):
    """Whether the bare object answers so, byte for byte.

    Embedded qdrant does not always give the same score for the same question: the seventh
    decimal depends on where the query vector lies in memory. So it is asked a few times.
    """
    return any(dumped(answer) == dumped(ask_bare()) for _ in range(24))


def wrap(memory, layer, **settings):
    """Collaborative, with more patience than a busy machine needs."""
    return collaborative(memory, layer, **{"timeout_s": 20, **settings})


def derived_in(answer):
    return [one for one in answer["results"] if one["id"].startswith("collab:")]


def shared(layer, memory, owner="bob", to="user:ann", text=LESSON):
    """A neighbour's memory and a grant of it; the id of the memory."""
    made = memory.add(text, user_id=owner, infer=False)["results"][0]["id"]
    memory.add("The sign-in page is blue", user_id="ann", infer=False)
    layer.drain()
    grant = layer.grant(f"user:{owner}", to=to, level="records")
    layer.drain()
    return made, grant


# -- what it was ------------------------------------------------------------------------------


def test_without_a_grant_every_answer_is_the_bare_one_byte_for_byte(bare, layer):
    for owner in ("ann", "bob"):
        for n in range(3):
            bare.add(f"{LESSON} {owner} {n}", user_id=owner, agent_id="coder", infer=False, metadata={"n": n})
    one = bare.get_all(filters={"user_id": "ann"})["results"][0]["id"]
    calls = [
        ask,
        lambda memory: ask(memory, top_k=1),
        lambda memory: ask(memory, explain=True),
        lambda memory: ask(memory, "нет", "вход"),
        lambda memory: memory.search(QUERY, filters={"agent_id": "coder"}),
        lambda memory: memory.get_all(filters={"user_id": "ann"}),
        lambda memory: memory.get(one),
        lambda memory: memory.get("00000000-0000-0000-0000-000000000000"),
        lambda memory: memory.history(one),
    ]
    for mode in ("merge", "annotate", "off"):
        wrapped = wrap(bare, layer, mode=mode)
        layer.index(backend_of(wrapped))
        layer.drain()
        for call in calls:
            assert is_bares(call(wrapped), lambda call=call: call(bare)), mode
        del bare.__dict__["_collab"]


BAD_CALLS = [
    ("search", ("q",), {"user_id": "ann"}),
    ("search", ("",), {"filters": {"user_id": "ann"}}),
    ("search", ("q",), {"filters": {}}),
    ("search", ("q",), {"filters": {"user_id": "ann"}, "threshold": 7}),
    ("search", ("q",), {"filters": {"user_id": "a b"}}),
    ("search", (), {}),
    ("get_all", (), {"user_id": "ann"}),
    ("add", ("m",), {}),
    ("add", ("m",), {"user_id": "ann", "no_such": 1}),
    ("add", (7,), {"user_id": "ann"}),
    ("update", ("00000000-0000-0000-0000-000000000000",), {"text": "x"}),
    ("update", ("x",), {}),
    ("delete", ("00000000-0000-0000-0000-000000000000",), {}),
    ("delete_all", (), {}),
]


@pytest.mark.parametrize(("method", "args", "kwargs"), BAD_CALLS)
def test_mem0s_own_refusals_are_unchanged(chroma, layer, method, args, kwargs):
    bare_error = failure(chroma, method, args, kwargs)
    wrapped_error = failure(wrap(chroma, layer), method, args, kwargs)
    assert bare_error is not None
    assert type(wrapped_error) is type(bare_error)
    assert str(wrapped_error) == str(bare_error)


def failure(memory, method, args, kwargs):
    try:
        getattr(memory, method)(*args, **kwargs)
    except Exception as error:
        return error
    return None


def test_it_is_the_callers_class_by_every_check_frameworks_make(bare, layer):
    wrapped = wrap(bare, layer)
    assert isinstance(wrapped, mem0.Memory)
    assert wrapped.__class__.__name__ == "Memory"
    assert type(wrapped).__module__ == mem0.Memory.__module__
    assert wrapped.__dict__ is bare.__dict__
    for name in ("add", "search", "get_all", "update", "delete", "delete_all", "get", "history", "reset"):
        assert inspect.signature(getattr(wrapped, name)) == inspect.signature(getattr(bare, name))
    for name in ("vector_store", "db", "llm", "embedding_model", "config", "collection_name", "api_version"):
        assert hasattr(wrapped, name)
    assert wrapped.entity_store.collection_name == "memories_entities"
    assert isinstance(wrapped.vector_store, type(object.__getattribute__(bare.vector_store, "_it")))


def test_it_can_be_made_collaborative_once(chroma, layer):
    wrapped = wrap(chroma, layer)
    for one in (wrapped, chroma):
        with pytest.raises(InputError, match="already"):
            collaborative(one, layer)


def test_what_is_no_mem0_object_or_no_fitting_setting_is_refused(chroma, layer):
    with pytest.raises(InputError, match="none of Mem0"):
        collaborative(object(), layer)
    for settings in ({"mode": "loud"}, {"limit": -1}, {"timeout_s": 0}, {"budget_tokens": 1}):
        with pytest.raises(InputError):
            wrap(chroma, layer, **settings)
    assert "_collab" not in vars(chroma)


# -- what it brings ---------------------------------------------------------------------------


def test_one_records_grant_brings_the_neighbours_lesson_with_its_evidence(bare, layer):
    wrapped = wrap(bare, layer)
    shared(layer, wrapped)
    answer = ask(wrapped)
    own_before = [one for one in answer["results"] if not one["id"].startswith("collab:")]
    assert is_bares({"results": own_before}, lambda: ask(bare))
    extra = answer["results"][len(own_before) :]
    assert 1 <= len(extra) <= 3
    first = extra[0]
    assert list(first) == ["id", "memory", "hash", "metadata", "score", "created_at", "updated_at"]
    assert "cookie domain" in first["memory"]
    assert first["score"] <= min(one["score"] for one in own_before)
    evidence = json.loads(first["metadata"]["collab_evidence"])
    assert [one["owner"] for one in evidence] == ["user:bob"]
    assert all(isinstance(value, (str, int, float)) for value in first["metadata"].values())


def test_russian_lessons_come_to_russian_questions(chroma, layer):
    wrapped = wrap(chroma, layer)
    shared(layer, wrapped, text="Вход зацикливается после обновления: удалите старый домен cookie.")
    (extra, *_) = derived_in(ask(wrapped, query="почему вход зацикливается после обновления"))
    assert "старый домен" in extra["memory"]


def test_annotate_leaves_the_results_alone_and_adds_one_key(chroma, layer):
    wrapped = wrap(chroma, layer, mode="annotate")
    shared(layer, wrapped)
    answer, own = ask(wrapped), ask(chroma)
    assert dumped(answer["results"]) == dumped(own["results"])
    assert set(answer) == {"results", "collab"}
    assert answer["collab"]["degraded"] == []
    assert "cookie domain" in answer["collab"]["facets"][0]["text"]
    json.dumps(answer)


def test_a_revoked_grant_takes_the_lesson_away_at_once(chroma, layer):
    wrapped = wrap(chroma, layer)
    _, grant = shared(layer, wrapped)
    assert derived_in(ask(wrapped))
    layer.revoke(grant.id)
    assert dumped(ask(wrapped)) == dumped(ask(chroma))


def test_an_owner_without_memories_still_gets_the_lesson_at_score_zero(chroma, layer):
    wrapped = wrap(chroma, layer)
    wrapped.add(LESSON, user_id="bob", infer=False)
    layer.grant("user:bob", to="tenant", level="records")
    layer.drain()
    extra = derived_in(ask(wrapped, owner="newcomer"))
    assert extra
    assert [one["score"] for one in extra] == [0.0] * len(extra)


def test_what_the_owner_knows_already_is_not_said_again(chroma, layer):
    wrapped = wrap(chroma, layer)
    wrapped.add(LESSON, user_id="ann", infer=False)
    shared(layer, wrapped)
    assert derived_in(ask(wrapped)) == []


@pytest.mark.parametrize(
    "filters",
    [{"user_id": "ann", "role": "user"}, {"user_id": "ann", "OR": [{"role": "user"}, {"role": "assistant"}]}],
)
def test_a_search_that_no_neighbour_can_satisfy_is_left_alone(chroma, layer, filters):
    wrapped = wrap(chroma, layer)
    shared(layer, wrapped)
    assert dumped(wrapped.search(QUERY, filters=filters)) == dumped(chroma.search(QUERY, filters=filters))


def test_top_k_of_zero_and_a_limit_are_kept(chroma, layer):
    wrapped = wrap(chroma, layer, limit=1)
    for n in range(4):
        wrapped.add(f"{LESSON} Case {n}.", user_id=f"u{n}", infer=False)
        layer.grant(f"user:u{n}", to="user:ann", level="records")
    layer.drain()
    assert len(derived_in(ask(wrapped))) == 1
    assert ask(wrapped, top_k=0) == {"results": []}


# -- writes reach the neighbours --------------------------------------------------------------


def test_an_update_through_the_wrapper_is_what_neighbours_see_next(bare, layer):
    wrapped = wrap(bare, layer)
    made, _ = shared(layer, wrapped)
    assert "cookie domain" in derived_in(ask(wrapped))[0]["memory"]
    wrapped.update(made, "Sign-in loops after the upgrade: restart the gateway twice.")
    layer.drain()
    texts = [one["memory"] for one in derived_in(ask(wrapped))]
    assert any("restart the gateway" in text for text in texts)
    assert not any("cookie domain" in text for text in texts)


@pytest.mark.parametrize("how", ["delete", "delete_all", "reset"])
def test_a_deletion_through_the_wrapper_is_gone_for_neighbours(bare, layer, how):
    wrapped = wrap(bare, layer)
    made, _ = shared(layer, wrapped)
    assert derived_in(ask(wrapped))
    {
        "delete": lambda: wrapped.delete(made),
        "delete_all": lambda: wrapped.delete_all(user_id="bob"),
        "reset": wrapped.reset,
    }[how]()
    assert derived_in(ask(wrapped)) == []


def test_writes_on_the_bare_object_are_seen_too(chroma, layer):
    wrapped = wrap(chroma, layer)
    made = chroma.add(LESSON, user_id="bob", infer=False)["results"][0]["id"]
    wrapped.add("The sign-in page is blue", user_id="ann", infer=False)
    layer.grant("user:bob", to="user:ann", level="records")
    layer.drain()
    assert derived_in(ask(wrapped))
    chroma.delete(made)
    wrapped.get_all(filters={"user_id": "ann"})
    wrapped.add("anything", user_id="ann", infer=False)
    assert derived_in(ask(wrapped)) == []


def test_a_full_store_is_brought_in_and_indexing_again_takes_nothing_new(bare, layer):
    for n in range(12):
        bare.add(f"Note {n} of bob about gateways", user_id="bob", infer=False)
    bare.add(LESSON, user_id="bob", infer=False)
    wrapped = wrap(bare, layer)
    assert layer.index(backend_of(wrapped), owners=["user:bob"]) == 13
    layer.grant("user:bob", to="user:ann", level="records")
    layer.drain()
    assert "cookie domain" in derived_in(ask(wrapped))[0]["memory"]
    layer.index(backend_of(wrapped))
    layer.drain()
    assert layer.health().counts["interactions"] == 13


def test_what_another_memory_writes_and_deletes_is_reconciled(tmp_path, chroma, layer):
    wrapped = wrap(chroma, layer)
    gone, _ = shared(layer, wrapped)
    other = open_memory(tmp_path / "mem0", "chroma")  # the same folder and history
    other.delete(gone)
    other.add("Sign-in loops after the upgrade: sync the clock.", user_id="bob", infer=False)
    assert layer.reconcile(backend_of(wrapped)) >= 2
    layer.drain()
    texts = [one["memory"] for one in derived_in(ask(wrapped))]
    assert any("sync the clock" in text for text in texts)
    assert not any("cookie domain" in text for text in texts)
    other.close()


def test_a_history_that_was_cleared_is_followed_from_its_new_start(tmp_path, layer):
    first = open_memory(tmp_path / "mem0")
    wrapped = wrap(first, layer)
    shared(layer, wrapped)
    layer.reconcile(backend_of(wrapped))
    first.close()
    other = open_memory(tmp_path / "mem0")
    other.reset()
    other.add("Sign-in loops after the upgrade: sync the clock.", user_id="bob", infer=False)
    wrapped = wrap(other, layer)
    assert layer.reconcile(backend_of(wrapped)) >= 1
    layer.drain()
    assert any("sync the clock" in one["memory"] for one in derived_in(ask(wrapped)))
    other.close()


# -- own ids, stars, threads ------------------------------------------------------------------


def test_own_ids_work_in_get_update_delete_and_history(bare, layer):
    wrapped = wrap(bare, layer)
    shared(layer, wrapped)
    found = derived_in(ask(wrapped))[0]
    got = wrapped.get(found["id"])
    assert (got["id"], got["memory"], got["score"]) == (found["id"], found["memory"], None)
    assert list(got) == list(found)
    with pytest.raises(DerivedReadOnlyError, match="derived"):
        wrapped.update(found["id"], "better")
    with pytest.raises(ValueError, match="cannot be updated"):
        wrapped.update(memory_id=found["id"], text="better")
    assert wrapped.history(found["id"]) == []
    assert wrapped.delete(found["id"]) == {"message": "Memory deleted successfully!"}
    assert wrapped.get(found["id"]) is None
    assert found["id"] not in [one["id"] for one in ask(wrapped)["results"]]
    with pytest.raises(ValueError, match="not found"):
        wrapped.delete("collab:nothing")
    assert wrapped.get("collab:nothing") is None


def test_a_star_is_refused_everywhere_and_deletes_nothing(bare, layer):
    wrapped = wrap(bare, layer)
    for owner in ("ann", "bob"):
        wrapped.add(LESSON, user_id=owner, infer=False)
    calls = [
        lambda: wrapped.delete_all(user_id="*"),
        lambda: wrapped.delete_all(user_id=" * "),
        lambda: wrapped.delete_all("*"),
        lambda: wrapped.delete_all(user_id="ann", agent_id="*"),
        lambda: wrapped.search("q", filters={"user_id": "*"}),
        lambda: wrapped.search("q", filters={"user_id": "ann", "AND": [{"run_id": "*"}]}),
        lambda: wrapped.get_all(filters={"agent_id": "*"}),
        lambda: wrapped.add("m", user_id="*", infer=False),
    ]
    for call in calls:
        with pytest.raises(WildcardIdError, match=r"`\*` is refused"):
            call()
    for owner in ("ann", "bob"):
        assert len(wrapped.get_all(filters={"user_id": owner})["results"]) == 1


def test_a_star_is_a_value_error_as_mem0s_own_bad_ids_are(chroma, layer):
    with pytest.raises(ValueError, match="Name one owner"):
        wrap(chroma, layer).delete_all(user_id="*")


def in_threads(count, work):
    failures = []

    def run(number):
        try:
            work(number)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_eight_threads_on_embedded_qdrant_lose_nothing(tmp_path, layer):
    bare = open_memory(tmp_path / "mem0", "qdrant")
    wrapped = wrap(bare, layer)

    def work(number):
        for turn in range(6):
            made = wrapped.add(f"note {number} {turn}", user_id=f"u{number}", infer=turn % 2 == 0)
            (one,) = (
                made["results"] or wrapped.add(f"note {number} {turn}", user_id=f"u{number}", infer=False)["results"]
            )
            wrapped.update(one["id"], f"note {number} {turn} edited")
            ask(wrapped, f"u{number}", "note")

    assert in_threads(8, work) == []
    for number in range(8):
        held = wrapped.get_all(filters={"user_id": f"u{number}"}, top_k=50)["results"]
        assert sorted(one["memory"] for one in held) == [f"note {number} {turn} edited" for turn in range(6)]
    layer.drain()
    bare.vector_store.client.close()
    bare.close()


def test_concurrent_updates_of_one_memory_keep_each_others_metadata(bare, layer):
    wrapped = wrap(bare, layer)
    made = wrapped.add("shared note", user_id="ann", infer=False)["results"][0]["id"]

    def work(number):
        for turn in range(3):
            wrapped.update(made, metadata={f"k{number}_{turn}": 1})

    assert in_threads(6, work) == []
    assert len([key for key in wrapped.get(made)["metadata"] if key.startswith("k")]) == 18


# -- failures ---------------------------------------------------------------------------------


class Layer:
    """Stands where a layer stands, and fails as it is told."""

    def __init__(self, fail=None, wait_s=0.0):
        self.fail, self.wait_s, self.seen = fail, wait_s, []

    def attach(self, backend):
        pass

    def context(self, entity, query, budget_tokens):
        time.sleep(self.wait_s)
        raise self.fail

    def observe_changes(self, backend, changes):
        if self.fail is not None:
            raise self.fail
        self.seen += changes


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (Layer(fail=RuntimeError("secret words")), "RuntimeError"),
        (Layer(fail=RuntimeError("secret words"), wait_s=0.6), "within 0.1 s"),
    ],
)
def test_if_the_layer_fails_the_store_answers_alone_and_says_so(chroma, caplog, broken, reason):
    chroma.add(LESSON, user_id="ann", infer=False)
    plain = ask(chroma)
    wrapped = collaborative(chroma, broken, mode="annotate", timeout_s=0.1)
    with caplog.at_level(logging.WARNING, logger="collab_layer_mem0"):
        answer = ask(wrapped)
    assert dumped(answer["results"]) == dumped(plain["results"])
    assert answer["collab"]["facets"] == []
    assert reason in answer["collab"]["degraded"][0]
    told = [record.getMessage() for record in caplog.records if record.name == "collab_layer_mem0"]
    assert len(told) == 1
    assert reason in told[0]
    assert not any(words in told[0] for words in ("secret", "cookie", "sign-in"))
    del chroma.__dict__["_collab"]
    assert dumped(ask(collaborative(chroma, broken, timeout_s=0.1))) == dumped(plain)


def test_a_layer_that_cannot_take_changes_fails_no_write_and_gets_them_later(chroma):
    from collab_layer.errors import StoreBusyError

    busy = Layer(fail=StoreBusyError("collab.db", "locked"))
    wrapped = collaborative(chroma, busy, mode="off")
    first = wrapped.add("one", user_id="ann", infer=False)["results"][0]["id"]
    assert busy.seen == []
    busy.fail = None
    second = wrapped.add("two", user_id="ann", infer=False)["results"][0]["id"]
    assert [change.ref.id for change in busy.seen] == [first, second]


def test_one_change_the_layer_refuses_does_not_take_the_others_with_it(chroma):
    class Picky(Layer):
        def observe_changes(self, backend, changes):
            if any(change.record and "bad" in change.record.text for change in changes):
                raise InputError("refused")
            self.seen += changes

    picky = Picky()
    wrapped = collaborative(chroma, picky, mode="off")
    said = [{"role": "user", "content": text} for text in ("good one", "bad one", "good two")]
    wrapped.add(said, user_id="ann", infer=False)
    assert [change.record.text for change in picky.seen] == ["good one", "good two"]


def test_a_write_that_mem0_fails_half_way_is_still_told(chroma, layer):
    wrapped = wrap(chroma, layer)

    def broken(*args, **kwargs):
        raise OSError("history is read-only")

    wrapped.db.add_history = broken
    with pytest.raises(OSError, match="read-only"):
        wrapped.add(LESSON, user_id="bob", infer=False)
    layer.grant("user:bob", to="user:ann", level="records")
    layer.drain()
    assert derived_in(ask(wrapped))


# -- frameworks -------------------------------------------------------------------------------

CALLS_OF_ONE = {
    "agno": lambda m: (
        m.add([{"role": "user", "content": LESSON}], user_id="ann", infer=False),
        m.search(query=QUERY, user_id="ann"),
        m.get_all(user_id="ann"),
    ),
    "autogen": lambda m: (
        m.add([{"role": "user", "content": LESSON}], user_id="ann", metadata={}, infer=False),
        m.search(QUERY, user_id="ann", limit=5),
        m.get_all(user_id="ann", limit=5),
    ),
    "strands": lambda m: (
        m.add([{"role": "user", "content": LESSON}], user_id="ann", agent_id=None, metadata=None, infer=False),
        m.search(query=QUERY, user_id="ann", agent_id=None),
        m.get_all(user_id="ann", agent_id=None),
    ),
    "proxy": lambda m: (
        m.add(messages=[{"role": "user", "content": LESSON}], user_id="ann", agent_id=None, run_id=None,
              metadata=None, filters=None, infer=False),
        m.search(query=QUERY, user_id="ann", agent_id=None, run_id=None, filters=None, top_k=5),
        m.get_all(user_id="ann"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("framework", CALLS_OF_ONE)
def test_calls_written_for_mem0_one_work_when_leniency_is_asked_for(chroma, layer, framework):
    wrapped = wrap(chroma, layer, lenient=True)
    added, found, listed = CALLS_OF_ONE[framework](wrapped)
    ids = [one["id"] for one in added["results"]]
    assert ids == [one["id"] for one in found["results"]] == [one["id"] for one in listed["results"]]
    with pytest.raises(WildcardIdError):
        wrapped.search("q", user_id="*")
    assert wrapped.delete_all(user_id="ann")["message"]


def test_calls_written_for_mem0_one_fail_as_before_by_default(chroma, layer):
    with pytest.raises(ValueError, match="Top-level entity parameters"):
        wrap(chroma, layer).search("q", user_id="ann")


def settings_of(tmp_path):
    openai = {"provider": "openai", "config": {"api_key": "unused"}}
    place = {"collection_name": "memories", "path": str(tmp_path / "chroma")}
    return {
        "vector_store": {"provider": "chroma", "config": place},
        "embedder": openai,
        "llm": openai,
        "history_db_path": str(tmp_path / "h.db"),
    }


def test_a_framework_that_constructs_the_class_gets_a_collaborative_one(tmp_path):
    from collab_layer_mem0.testing import EchoModel, HashEmbedding

    config = {**settings_of(tmp_path), "collab": {"path": str(tmp_path / "c.db"), "tenant": "acme"}}
    memory = Memory.from_config(config)
    memory.embedding_model, memory.llm = HashEmbedding(), EchoModel()
    assert isinstance(memory, mem0.Memory)
    assert type(memory).__name__ == "Memory"
    assert memory.add(LESSON, user_id="ann", infer=False)["results"]
    with pytest.raises(WildcardIdError):
        memory.delete_all(user_id="*")
    assert (tmp_path / "c.db").exists()
    memory.close()
    with CollabLayer.open(str(tmp_path / "c.db"), tenant="acme") as again:
        assert again.health().counts["interactions"] == 1


def test_a_layer_opened_for_a_memory_is_closed_with_it_and_a_given_one_is_not(tmp_path, layer):
    from collab_layer_mem0.testing import open_memory

    with collaborative(open_memory(tmp_path / "a"), path=str(tmp_path / "own.db")) as memory:
        memory.add(LESSON, user_id="ann", infer=False)
    with collaborative(open_memory(tmp_path / "b"), layer) as memory:
        memory.add(LESSON, user_id="ann", infer=False)
    assert layer.health().counts["interactions"] == 1


# -- awaited ----------------------------------------------------------------------------------


@pytest.fixture
def async_bare(tmp_path):
    memory = open_memory(tmp_path / "mem0", "chroma", cls=mem0.AsyncMemory)
    yield memory
    memory.close()


async def awaited_story(memory, wrapped, do):
    await wrapped.add("The sign-in page is blue", user_id="ann", infer=False)
    made = (await wrapped.add(LESSON, user_id="bob", infer=False))["results"][0]["id"]
    plain = await memory.search(QUERY, filters={"user_id": "ann"})
    assert dumped(await ask(wrapped)) == dumped(plain)
    await do("grant", "user:bob", to="user:ann", level="records")
    await do("drain")
    extra = derived_in(await ask(wrapped))
    assert "cookie domain" in extra[0]["memory"]
    assert (await wrapped.get(extra[0]["id"]))["memory"] == extra[0]["memory"]
    with pytest.raises(DerivedReadOnlyError):
        await wrapped.update(extra[0]["id"], "x")
    with pytest.raises(WildcardIdError):
        await wrapped.delete_all(user_id="*")
    await asyncio.gather(*(wrapped.update(made, metadata={f"k{n}": n}) for n in range(8)))
    assert len([key for key in (await wrapped.get(made))["metadata"] if key.startswith("k")]) == 8
    await wrapped.delete_all(user_id="bob")
    assert derived_in(await ask(wrapped)) == []
    again = (await wrapped.add(LESSON, user_id="bob", infer=False))["results"][0]["id"]
    await do("drain")
    assert derived_in(await ask(wrapped))
    await wrapped.reset()
    assert derived_in(await ask(wrapped)) == []
    assert again
    await wrapped.add(LESSON, user_id="bob", infer=False)
    await do("drain")
    assert derived_in(await ask(wrapped, "ann"))


def test_an_async_memory_over_an_async_layer(tmp_path, async_bare):
    async def story():
        async with await AsyncCollabLayer.open(str(tmp_path / "collab.db")) as layer:
            wrapped = wrap(async_bare, layer)
            assert isinstance(wrapped, mem0.AsyncMemory)
            assert inspect.iscoroutinefunction(wrapped.search)
            await awaited_story(async_bare, wrapped, lambda name, *a, **k: getattr(layer, name)(*a, **k))

    asyncio.run(story())


def test_an_async_memory_over_a_blocking_layer(async_bare, layer):
    async def story():
        wrapped = wrap(async_bare, layer)
        await awaited_story(async_bare, wrapped, lambda name, *a, **k: asyncio.to_thread(getattr(layer, name), *a, **k))

    asyncio.run(story())


def test_a_blocking_class_over_an_async_layer_is_refused(chroma, tmp_path):
    async def story():
        async with await AsyncCollabLayer.open(str(tmp_path / "collab.db")) as layer:
            with pytest.raises(InputError, match="CollabLayer"):
                wrap(chroma, layer)

    asyncio.run(story())
    assert Entity.parse("user:ann")
