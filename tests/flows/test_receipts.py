"""Receipts of erasures: signed, completed when the last copy is gone, never lost; on both databases."""

from __future__ import annotations

import stat

import pytest

from collab_layer import CollabLayer, MemoryRef
from collab_layer.config import Settings
from collab_layer.errors import KeyFileError, NotPermittedError, UnknownIdError
from collab_layer.governance.attest import hashed
from collab_layer.receipts import verify_receipt
from collab_layer.testing.memory import InMemoryBackend

BY_HAND = Settings(worker=False)


def _delivered(layer, store):
    layer.attach(store, deliver=True)
    for who in ("user:a", "user:b"):
        for n in range(6):
            layer.observe(who, f"item:{n}", verb="liked")
    layer.grant("user:a", "user:b", "records")
    layer.drain()
    [id_] = layer.observe("user:a", "item:dune", verb="loved", text="Dune is the best desert book I have read")
    layer.drain()
    assert any("Dune" in text for text in store.texts())
    return id_


def test_a_receipt_is_signed_by_the_key_of_the_deployment_and_read_again_by_its_id(layer):
    [id_] = layer.observe("agent:a", text="Pinned the version")
    layer.drain()
    receipt = layer.forget(id_)
    assert verify_receipt(receipt.model_dump_json(), layer.receipt_key()) == receipt
    assert layer.receipt(receipt.id) == receipt
    assert (receipt.status, receipt.pending, receipt.revision) == ("complete", 0, 1)


def test_a_receipt_lists_what_was_erased_as_salted_hashes_and_names_nothing(layer):
    layer.observe("agent:a", text="Fixed the Zanzibar modules conflict", links=["topic:zanzibar"])
    layer.grant("agent:a", "agent:b", "records")
    layer.drain()
    facets = [facet.id for facet in layer.context("agent:b", "zanzibar modules conflict").facets]
    receipt = layer.forget("agent:a")
    assert receipt.subject == hashed(receipt.salt, "agent:a")
    assert receipt.erased["entities"].hashes == (hashed(receipt.salt, "agent:a"),), "topics are words of the text"
    assert {hashed(receipt.salt, id_) for id_ in facets} <= set(receipt.erased["derived"].hashes)
    assert (receipt.erased["cards"].count, receipt.erased["interactions"].count) == (1, 1)
    said = receipt.model_dump_json().lower()
    assert not any(word in said for word in ("agent:", "zanzibar", *facets))


def test_a_memory_of_a_store_is_listed_by_store_and_native_id(layer):
    store = InMemoryBackend()
    ref = store.add("user:ann", "Dune has worms")
    layer.index(store)
    layer.drain()
    receipt = layer.forget(MemoryRef(backend=ref.backend, id=ref.id))
    assert receipt.erased["records"].hashes == (hashed(receipt.salt, f"{ref.backend}:{ref.id}"),)


def test_a_receipt_of_another_tenant_is_unknown(layer):
    [id_] = layer.observe("agent:a", text="Pinned the version")
    receipt = layer.forget(id_)
    with pytest.raises(UnknownIdError):
        layer.for_tenant("other").receipt(receipt.id)


def test_who_was_forgotten_still_reads_the_receipt_by_its_id(layer):
    layer.observe("agent:a", text="Pinned the version")
    me = layer.as_("agent:a")
    receipt = me.forget("agent:a")
    assert me.receipt(receipt.id) == receipt
    with pytest.raises(NotPermittedError):
        me.receipt_key()


def test_while_a_store_is_down_the_receipt_says_pending_and_the_worker_completes_it(layer, clock):
    store = InMemoryBackend()
    id_ = _delivered(layer, store)
    store.down = True
    first = layer.forget(id_)
    assert (first.status, first.completed) == ("pending", None)
    assert first.pending >= 1
    assert verify_receipt(first.model_dump_json(), layer.receipt_key()) == first
    layer.drain()
    assert layer.receipt(first.id) == first
    store.down = False
    clock.advance(hours=1)
    layer.drain()
    second = layer.receipt(first.id)
    assert not any("Dune" in text for text in store.texts())
    assert (second.id, second.revision, second.status, second.pending) == (first.id, 2, "complete", 0)
    assert second.completed == clock()
    assert (second.at, second.erased, second.salt) == (first.at, first.erased, first.salt)
    assert verify_receipt(second.model_dump_json(), layer.receipt_key()) == second
    layer.drain()
    assert layer.receipt(first.id) == second


def test_what_dies_between_erasing_and_signing_is_signed_when_it_is_next_read(database_url, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with CollabLayer.open(database_url, settings=Settings(worker=False, key_file=blocked / "key")) as layer:
        layer.observe("agent:a", text="Pinned the version")
        receipt = layer.forget("agent:a")
        assert receipt.signature is None
        with pytest.raises(KeyFileError, match="COLLAB_KEY_FILE"):
            layer.receipt(receipt.id)
        parts = {part.name: part for part in layer.health().parts}
        assert parts["receipts"].condition == "degraded"
        with pytest.raises(UnknownIdError):
            layer.forget("agent:a")
    with CollabLayer.open(database_url, settings=BY_HAND) as layer:
        signed = layer.receipt(receipt.id)
        assert verify_receipt(signed.model_dump_json(), layer.receipt_key()) == signed
        later = {"key": None, "signature": None, "status": receipt.status, "pending": receipt.pending}
        assert signed.model_copy(update={**later, "completed": receipt.completed}) == receipt
        assert signed.status == "complete"
        assert "receipts" not in {part.name for part in layer.health().parts}


def test_or_by_the_next_worker(database_url, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with CollabLayer.open(database_url, settings=Settings(worker=False, key_file=blocked / "key")) as layer:
        layer.observe("agent:a", text="Pinned the version")
        receipt = layer.forget("agent:a")
        layer.drain()
    from sqlalchemy import select

    from collab_layer.graph.tables import receipts

    with CollabLayer.open(database_url, settings=BY_HAND) as layer:
        layer.drain()
        with layer._layer._core.tools.store.database.read() as connection:
            states = [tuple(row) for row in connection.execute(select(receipts.c.id, receipts.c.state))]
        assert states == [(receipt.id, "complete")]


def test_the_key_lies_beside_the_file_for_its_owner_alone_and_is_kept(sqlite_url, tmp_path):
    with CollabLayer.open(sqlite_url, settings=BY_HAND) as layer:
        assert not list(tmp_path.glob("*key*")), "nobody needed it yet"
        public = layer.receipt_key()
    [file] = tmp_path.glob("*key*")
    assert file.name == "collab.db.receipt-key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert b"PRIVATE" not in (tmp_path / "collab.db").read_bytes()
    with CollabLayer.open(sqlite_url, settings=BY_HAND) as layer:
        assert layer.receipt_key() == public
    file.write_text("not a key")
    with CollabLayer.open(sqlite_url, settings=BY_HAND) as layer, pytest.raises(KeyFileError, match="holds no key"):
        layer.receipt_key()


def test_each_postgres_database_has_a_key_in_the_configuration_folder(postgres_url, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with CollabLayer.open(postgres_url, settings=BY_HAND) as layer:
        layer.receipt_key()
    [file] = (tmp_path / "collab-layer").iterdir()
    assert file.name.startswith("receipts-")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_processes_that_make_the_key_at_once_end_up_with_one(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    from collab_layer.flows.keys import KeyFile
    from collab_layer.governance.attest import public

    path = tmp_path / "deep" / "key"
    with ThreadPoolExecutor(16) as pool:
        made = set(pool.map(lambda _: public(KeyFile(path).key()), range(64)))
    assert len(made) == 1
    assert [one.name for one in path.parent.iterdir()] == ["key"]
