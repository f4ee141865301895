"""Every write to a real Mem0 is seen, in order, whatever path it takes."""

import threading

import pytest
from collab_layer_mem0.tap import Outbox, Tap

from collab_layer.ports.backend import Change
from collab_layer.types.entity import MemoryRef


@pytest.fixture
def tapped(bare):
    tap = Tap("mem0")
    bare.vector_store = tap.store(bare.vector_store)
    bare.embedding_model = tap.embedder(bare.embedding_model)
    return bare, tap


def told(tap):
    return [(change.ref.id, change.record and change.record.text) for change in tap.outbox.take()]


def test_adding_is_seen_with_owner_text_and_version(tapped):
    memory, tap = tapped
    made = memory.add("Сессия падает после обновления", user_id="ann", agent_id="coder", infer=False)["results"][0]
    (change,) = tap.outbox.take()
    assert change.ref.id == made["id"]
    assert (str(change.record.owner), change.record.text) == ("user:ann", "Сессия падает после обновления")
    assert [str(link) for link in change.record.links] == ["agent:coder"]
    assert change.ref.version.startswith(memory.get(made["id"])["hash"])


def test_an_extracting_add_is_seen_as_what_was_extracted(tapped):
    memory, tap = tapped
    made = memory.add([{"role": "user", "content": "I moved to Kazan"}], user_id="ann")["results"]
    assert made
    assert told(tap) == [(one["id"], one["memory"]) for one in made]


def test_an_update_is_seen_with_its_new_text(tapped):
    memory, tap = tapped
    made = memory.add("old words", user_id="ann", infer=False)["results"][0]["id"]
    (before,) = tap.outbox.take()
    memory.update(made, "new words")
    (after,) = tap.outbox.take()
    assert (after.ref.id, after.record.text) == (made, "new words")
    assert after.ref.version != before.ref.version


def test_a_metadata_update_is_seen_as_a_new_version(tapped):
    memory, tap = tapped
    made = memory.add("same words", user_id="ann", infer=False)["results"][0]["id"]
    (before,) = tap.outbox.take()
    memory.update(made, metadata={"collab_links": "tool:pip"})
    (after,) = tap.outbox.take()
    assert after.ref.version != before.ref.version
    assert [str(link) for link in after.record.links] == ["tool:pip"]


def test_a_memory_whose_words_are_taken_away_is_told_as_gone(chroma):
    tap = Tap("mem0")
    chroma.vector_store = tap.store(chroma.vector_store)
    made = chroma.add("some words", user_id="ann", infer=False)["results"][0]["id"]
    tap.outbox.take()
    chroma.update(made, " ")
    assert told(tap) == [(made, None)]


def test_deletions_are_seen_one_by_one_also_of_delete_all(tapped):
    memory, tap = tapped
    ids = [memory.add(f"note {n}", user_id="ann", infer=False)["results"][0]["id"] for n in range(3)]
    other = memory.add("note of bob", user_id="bob", infer=False)["results"][0]["id"]
    tap.outbox.take()
    memory.delete(ids[0])
    memory.delete_all(user_id="ann")
    seen = told(tap)
    assert sorted(seen) == sorted((one, None) for one in ids)
    assert other not in [one for one, _ in seen]


def test_a_reset_is_seen_as_the_end_of_every_memory(tapped):
    memory, tap = tapped
    ids = [memory.add(f"note {n}", user_id=f"u{n}", infer=False)["results"][0]["id"] for n in range(3)]
    tap.outbox.take()
    memory.reset()
    assert sorted(told(tap)) == sorted((one, None) for one in ids)
    made = memory.add("after the reset", user_id="ann", infer=False)["results"][0]["id"]
    assert told(tap) == [(made, "after the reset")]


def test_derived_items_and_muted_writes_are_no_news(tapped):
    memory, tap = tapped
    memory.add("Peers advise to pin it", agent_id="collab", infer=False)
    with tap.muted():
        memory.add("not to be told", user_id="ann", infer=False)
    assert told(tap) == []


def test_a_failed_write_is_not_told(chroma):
    tap = Tap("mem0")
    chroma.vector_store = tap.store(chroma.vector_store)
    with pytest.raises(ValueError, match=r"(?i)metadata"):
        chroma.add("nested", user_id="ann", metadata={"nested": {"a": {"b": 1}}}, infer=False)
    assert told(tap) == []


def test_the_stand_in_is_an_instance_of_the_store_and_passes_everything_on(tapped):
    memory, _ = tapped
    real = object.__getattribute__(memory.vector_store, "_it")
    assert isinstance(memory.vector_store, type(real))
    assert memory.vector_store.collection_name == real.collection_name
    memory.vector_store.mark = 7
    assert real.mark == 7
    assert not hasattr(memory.vector_store, "no_such_thing")


def test_a_query_is_embedded_once(chroma, tmp_path):
    import asyncio

    from collab_layer_mem0.embedder import Mem0Embedder

    tap = Tap("mem0")
    model = chroma.embedding_model
    chroma.embedding_model = tap.embedder(model)
    chroma.add("the parser fails", user_id="ann", infer=False)
    chroma.search("why does the parser fail", filters={"user_id": "ann"})
    embedder, before = Mem0Embedder(chroma, "mem0", tap.recent), model.calls
    vectors = asyncio.run(embedder.embed(["why does the parser fail", "the parser fails", ""]))
    assert model.calls == before
    assert vectors.shape == (3, embedder.dim)
    assert not vectors[2].any()
    asyncio.run(embedder.embed(["never seen"]))
    assert model.calls == before + 1
    assert embedder.id.endswith("HashEmbedding/hash/256")


def test_eight_threads_lose_nothing_through_the_lock(tapped):
    memory, tap = tapped
    failures, made = [], []

    def work(number):
        try:
            for turn in range(6):
                one = memory.add(f"note {number} {turn}", user_id=f"u{number}", infer=False)["results"][0]["id"]
                made.append(one)
                memory.update(one, f"note {number} {turn} edited")
                memory.search("note", filters={"user_id": f"u{number}"})
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(one for one, _ in told(tap)) == sorted(made)
    for number in range(8):
        held = memory.get_all(filters={"user_id": f"u{number}"}, top_k=50)["results"]
        assert sorted(one["memory"] for one in held) == [f"note {number} {turn} edited" for turn in range(6)]


class TestTheOutbox:
    @staticmethod
    def change(name):
        return Change(MemoryRef(backend="mem0", id=name), None)

    def test_each_memory_comes_once_as_it_was_last_seen(self):
        outbox = Outbox()
        for name in ("a", "b", "a"):
            outbox.put(self.change(name))
        assert [change.ref.id for change in outbox.take()] == ["b", "a"]
        assert outbox.take() == []

    def test_what_is_put_back_comes_first_again(self):
        outbox = Outbox()
        outbox.put(self.change("late"))
        outbox.put_back([self.change("one"), self.change("two")])
        assert [change.ref.id for change in outbox.take()] == ["one", "two", "late"]

    def test_a_full_outbox_keeps_the_newest(self):
        outbox = Outbox(size=2)
        for name in ("a", "b", "c"):
            outbox.put(self.change(name))
        outbox.put_back([self.change("old")])
        assert [change.ref.id for change in outbox.take()] == ["b", "c"]
