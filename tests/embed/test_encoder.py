"""A sentence encoder in a folder, really run: MiniLM. `make test-embed` fetches it and fails without it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from collab_layer import CollabLayer
from collab_layer.builtin.onnx_embedder import MODEL, TOKENIZER, OnnxEmbedder
from collab_layer.config import Settings
from collab_layer.errors import ModelSetupError
from collab_layer.surface.cli.main import main

pytestmark = pytest.mark.embed

VPN = "The VPN drops on macOS after sleep"
SAME = "my laptop loses the tunnel when it wakes up"
OTHER = "sourdough starter smells of acetone"


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(os.environ["COLLAB_TEST_ENCODER"]).absolute()


@pytest.fixture(scope="module")
def encoder(folder: Path) -> OnnxEmbedder:
    return OnnxEmbedder(folder)


def test_a_paraphrase_without_a_shared_word_is_nearer_than_another_matter(encoder: OnnxEmbedder) -> None:
    vpn, same, other = asyncio.run(encoder.embed([VPN, SAME, OTHER]))
    assert vpn @ same > 0.3 > vpn @ other


def test_vectors_are_of_unit_length_and_zero_for_blanks(encoder: OnnxEmbedder) -> None:
    found = encoder.vectors([VPN, "", " \n", "Привет, мир", "word " * 5_000])
    assert found.dtype == np.float32
    assert found.shape == (5, encoder.dim)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 0, 0, 1, 1], abs=1e-5)
    assert encoder.vectors([]).shape == (0, encoder.dim)


def test_a_text_has_one_vector_whatever_it_is_embedded_with(encoder: OnnxEmbedder) -> None:
    texts = [f"{VPN}, for the {at}th time, {'again ' * at}" for at in range(20)]
    together = encoder.vectors(texts)
    apart = np.stack([encoder.vectors([text])[0] for text in reversed(texts)])[::-1]
    assert np.allclose(together, apart, atol=1e-5)


def test_the_id_follows_the_files(folder: Path, encoder: OnnxEmbedder, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / folder.name))
    assert OnnxEmbedder(copy).id == encoder.id
    rules = json.loads((copy / TOKENIZER).read_text(encoding="utf-8"))
    (copy / TOKENIZER).write_text(json.dumps({**rules, "normalizer": None}), encoding="utf-8")
    assert OnnxEmbedder(copy).id != encoder.id


@pytest.mark.parametrize("name", [MODEL, TOKENIZER])
@pytest.mark.parametrize("damage", ["gone", "cut off", "empty"])
def test_a_damaged_folder_is_refused_in_one_sentence(folder: Path, tmp_path: Path, name: str, damage: str) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "encoder"))
    whole = (copy / name).read_bytes()
    if damage == "gone":
        (copy / name).unlink()
    else:
        (copy / name).write_bytes(whole[: len(whole) // 2 if damage == "cut off" else 0])
    with pytest.raises(ModelSetupError, match=name):
        OnnxEmbedder(copy)


def test_a_layer_finds_a_paraphrase_with_it(folder: Path, tmp_path: Path) -> None:
    settings = Settings(worker=False, embedder=f"onnx:{folder}")
    with CollabLayer.open(str(tmp_path / "layer.db"), settings=settings) as layer:
        assert layer.embedder.startswith("minilm-l6-int8-384-")
        layer.observe("agent:a", verb="noted", text=VPN, outcome="reset the network profile")
        layer.observe("agent:a", verb="noted", text=OTHER, outcome="feed it more often")
        layer.grant("agent:a", "agent:b", "records")
        layer.drain()
        told = str(layer.context("agent:b", SAME))
        assert "reset the network profile" in told
        assert "feed it" not in told


def test_a_measurement_runs_with_it_and_names_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", "tasks", "staleness", "--only", "facts", "--embedder", f"onnx:{folder}", "--json"]
    main(arguments)
    report = json.loads(capsys.readouterr().out)
    assert report["embedder"].startswith("minilm-l6-int8-384-")
    assert any(row["name"] == "staleness.facts.after100" and row["ok"] for row in report["rows"])
