from __future__ import annotations

import asyncio
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.builtin.embedder import DIM, HashingEmbedder
from collab_layer.ports.models import Embedder

EMBEDDER = HashingEmbedder()


def cosine(one: str, other: str) -> float:
    left, right = EMBEDDER.vectors([one, other])
    return float(left @ right)


def test_it_is_an_embedder_with_an_id_that_names_its_dimension():
    assert isinstance(EMBEDDER, Embedder)
    assert EMBEDDER.id == f"hashing-{DIM}-v1"
    assert HashingEmbedder(64).id != EMBEDDER.id
    assert HashingEmbedder(64).vectors(["x1 word"]).shape == (1, 64)
    with pytest.raises(ValueError, match="16"):
        HashingEmbedder(8)


def test_async_and_blocking_give_the_same_float32_rows():
    texts = ["go modules", "", "модули"]
    vectors = asyncio.run(EMBEDDER.embed(texts))
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, EMBEDDER.vectors(texts))


def test_vectors_are_of_unit_length_and_zero_without_content():
    vectors = EMBEDDER.vectors(["pinned go modules", "the of and", "", "!!!"])
    assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-6)
    assert not vectors[1:].any()
    assert EMBEDDER.vectors([]).shape == (0, DIM)


def test_a_text_has_the_same_vector_alone_in_a_batch_and_in_another_process():
    text = "конфликт модулей Go в go.mod"
    batch = EMBEDDER.vectors([*(f"filler number {number}" for number in range(700)), text])
    assert np.array_equal(batch[-1], EMBEDDER.vectors([text])[0])
    code = (
        "import sys; from collab_layer.builtin.embedder import HashingEmbedder;"
        "sys.stdout.buffer.write(HashingEmbedder().vectors(['go.mod checksum']).tobytes())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert other.stdout == EMBEDDER.vectors(["go.mod checksum"]).tobytes()


@pytest.mark.parametrize(
    ("text", "like", "unlike"),
    [
        ("Go modules conflict", "a conflict of the Go module", "sourdough bread recipe"),
        ("конфликты модулей", "конфликт модуля", "рецепт хлеба на закваске"),
        ("reconfigure the proxy", "proxy configuration", "watering the garden"),
        ("kubernets pod crash", "kubernetes pods", "violin lessons"),
    ],
)
def test_inflections_and_near_spellings_are_closer_than_other_subjects(text, like, unlike):
    assert cosine(text, like) > cosine(text, unlike) + 0.25


def test_unrelated_texts_stay_near_zero():
    english = ["sourdough bread recipe", "violin lessons for children", "kubernetes pod crash", "refund of a flight"]
    russian = ["посадка роз весной", "ремонт карбюратора", "квантовая теория поля", "уроки скрипки"]
    subjects = english + russian
    vectors = EMBEDDER.vectors(subjects)
    off = (vectors @ vectors.T)[~np.eye(len(subjects), dtype=bool)]
    assert abs(off).max() < 0.3


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=80), max_size=6))
def test_every_row_is_unit_or_zero_and_finite(texts):
    lengths = np.linalg.norm(EMBEDDER.vectors(texts), axis=1)
    assert all(length == 0 or abs(length - 1) < 1e-5 for length in lengths)
