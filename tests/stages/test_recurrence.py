"""When a matter has come up often enough."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collab_layer.bench.chatter import small_talk
from collab_layer.builtin.embedder import HashingEmbedder
from collab_layer.stages.recurrence import HIGH, LOW, SHOWN, candidates, likeness, ripe

VPN = [
    "The staging VPN drops after thirty minutes, renew the client certificate",
    "Again the staging VPN drops after half an hour; a new client certificate helps",
    "If the VPN into staging drops after thirty minutes, get the client certificate renewed",
    "Staging VPN gone after thirty minutes until the client certificate was renewed",
]
VPN_RU = [
    "Тестовый VPN обрывается через полчаса, обновите сертификат клиента",
    "Опять тестовый VPN обрывается через полчаса; помог новый сертификат клиента",
    "Если тестовый VPN обрывается через полчаса, достаточно обновить сертификат клиента",
    "Тестового VPN нет уже через полчаса, пока не обновили сертификат клиента",
]
CHANCE = np.random.default_rng(7)
OTHER = [small_talk(CHANCE, language) for language in ("en", "ru") for _ in range(100)]


def unit(texts: list[str]) -> np.ndarray:
    raw = HashingEmbedder().vectors(texts)
    out = raw - raw.mean(axis=0)
    return (out / np.linalg.norm(out, axis=1, keepdims=True)).astype(np.float32)


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def look(texts: list[str], new: list[int], read: set[int] = frozenset(), count: int = 4) -> list[int] | None:
    """What a worker does with the newest of some notes."""
    vectors, every = unit(texts), np.arange(len(texts), dtype=np.int32)
    least = likeness(vectors.__getitem__, every)
    near = candidates(vectors.__getitem__, every, rows(*new), least=least)
    mask = np.isin(near, np.array(sorted(read), np.int64))
    found = ripe(vectors.__getitem__, near, rows(*new), mask, least=least, count=count)
    return None if found is None else found.tolist()


@pytest.mark.parametrize("matter", [VPN, VPN_RU], ids=["en", "ru"])
def test_the_fourth_wording_of_a_matter_makes_it_ripe(matter):
    texts = [*OTHER, *matter]
    newest = len(texts) - 1
    assert look(texts[:-1], [newest - 1]) is None
    found = look(texts, [newest])
    assert found is not None
    assert found[0] == newest
    assert set(found) == {newest, newest - 1, newest - 2, newest - 3}


def test_what_a_model_has_read_counts_no_more():
    texts = [*OTHER, *VPN]
    newest = len(texts) - 1
    assert look(texts, [newest], {newest - 1}) is None
    assert look(texts, [newest], {newest}) is None


def test_chance_makes_few_unrelated_notes_ripe():
    vectors, every = unit(OTHER), np.arange(len(OTHER), dtype=np.int32)
    least, unread = likeness(vectors.__getitem__, every), np.zeros(len(OTHER), np.bool_)
    found = [ripe(vectors.__getitem__, every, rows(at), unread, least=least) for at in range(len(OTHER))]
    assert sum(one is not None for one in found) <= 0.1 * len(OTHER)


def test_of_two_ripe_matters_the_one_with_more_records_is_taken():
    texts = [*OTHER, *VPN, *VPN_RU, VPN_RU[0] + " снова"]
    found = look(texts, list(range(len(texts))))
    assert found is not None
    assert all("VPN" in texts[row] and "сертификат" in texts[row] for row in found)


def test_what_only_resembles_one_record_of_a_matter_does_not_make_it_ripe():
    matter = np.array([[1, 0, 0, 0], [0.8, 0.6, 0, 0], [0.8, 0.55, 0.2, 0]])
    stranger = np.array([[0.7, -0.7, 0, 0]])
    vectors = np.concatenate([matter, stranger]).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    unread = np.zeros(4, np.bool_)
    assert ripe(vectors.__getitem__, rows(0, 1, 2, 3), rows(0), unread, least=0.5, count=4) is None
    found = ripe(vectors.__getitem__, rows(0, 1, 2, 3), rows(0), unread, least=0.5, count=3)
    assert found is not None
    assert sorted(found.tolist()) == [0, 1, 2]


def test_no_more_than_a_model_is_shown_at_once():
    texts = [*OTHER, *[VPN[0]] * 30]
    found = look(texts, [len(texts) - 1])
    assert found is not None
    assert len(found) == SHOWN
    assert found[0] == len(texts) - 1


def test_the_likeness_takes_the_embedders_scale_with_it():
    raw = HashingEmbedder().vectors([*OTHER, *VPN])
    squeezed = 0.2 * raw
    squeezed[:, 0] += 3.0  # as embedders do whose every cosine lies near 0.9
    every = np.arange(len(raw), dtype=np.int32)

    def centred(vectors):
        out = vectors - vectors.mean(axis=0)
        return (out / np.linalg.norm(out, axis=1, keepdims=True)).astype(np.float32)

    plain, compressed = centred(raw), centred(squeezed)
    assert float((squeezed @ squeezed.T)[0, 1] / np.linalg.norm(squeezed[0]) / np.linalg.norm(squeezed[1])) > 0.9
    assert likeness(compressed.__getitem__, every) == pytest.approx(likeness(plain.__getitem__, every), abs=0.02)


def test_few_records_tell_nothing_about_an_embedder():
    assert likeness(unit(VPN).__getitem__, np.arange(4, dtype=np.int32)) == HIGH


def test_a_matter_is_more_than_one_record():
    with pytest.raises(ValueError, match="2 records"):
        look([*OTHER, *VPN], [0], count=1)


@given(st.integers(1, 60), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_whatever_is_ripe_is_unread_alike_and_starts_with_a_new_record(size, count, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(size, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    every = np.arange(size, dtype=np.int32)
    new = np.flatnonzero(rng.random(size) < 0.3).astype(np.int32)
    read = rng.random(size) < 0.4
    least = likeness(vectors.__getitem__, every)
    assert LOW <= least <= HIGH
    near = candidates(vectors.__getitem__, every, new, least=least)
    assert set(new.tolist()) <= set(near.tolist())
    found = ripe(vectors.__getitem__, near, new, read[near], least=least, count=count)
    if found is not None:
        assert found[0] in new
        assert count <= len(set(found.tolist())) == len(found) <= SHOWN or count > SHOWN
        assert not read[found].any()
        assert all(vectors[found[0]] @ vectors[row] >= least - 1e-6 for row in found)
