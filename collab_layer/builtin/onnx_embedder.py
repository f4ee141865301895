"""Texts to vectors by a sentence encoder that lies in a folder, such as MiniLM.

In:   a folder with `model.onnx` and `tokenizer.json`, as sentence encoders are published.
Out:  unit float32 vectors: the mean of a text's token states; zeros for a text of blanks.
Never: a download. The two files decide the vectors, so their digest is in the id.

Source of the pooling: Reimers and Gurevych, Sentence-BERT, EMNLP 2019.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from collab_layer.errors import ModelSetupError
from collab_layer.types.graph import Floats, Ids, Vectors

MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
READ = 256
"""Tokens of one text that are read, as sentence encoders of this size were trained."""
_BATCH = 16
INSTALL = "pip install 'collab-layer[embed]'"


class OnnxEmbedder:
    """A sentence encoder in ONNX form.

    Args:
        folder: Where `model.onnx` and `tokenizer.json` lie.
        threads: Of one question to the model; all cores if 0.

    Raises:
        ModelSetupError: A file or a library is missing, or the files are no sentence encoder.
    """

    def __init__(self, folder: str | Path, *, threads: int = 0) -> None:
        self._folder = Path(folder)
        self._name = f"onnx:{folder}"
        files = [self._bytes(name) for name in (MODEL, TOKENIZER)]
        self._session = self._model(threads)
        self._tokens = self._tokenizer()
        self._takes = {one.name for one in self._session.get_inputs()}
        self._dim = self._length()
        digest = sha256(b"".join(sha256(one).digest() for one in files)).hexdigest()[:8]
        self._id = f"{self._folder.resolve().name}-{self._dim}-{digest}"

    @property
    def id(self) -> str:
        """Name of the folder, length, and a digest of both files."""
        return self._id

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """See `Embedder.embed`; computed in a thread of its own, since a text takes some 10 ms."""
        return await asyncio.to_thread(self.vectors, texts)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """As `embed`. Texts of like length share a batch, so that little is filled up."""
        out = np.zeros((len(texts), self._dim), np.float32)
        said = sorted((at for at, text in enumerate(texts) if text.strip()), key=lambda at: len(texts[at]))
        for start in range(0, len(said), _BATCH):
            part = said[start : start + _BATCH]
            out[part] = self._vectors([texts[at] for at in part])
        return out

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        read = self._tokens.encode_batch(list(texts))
        seen: Ids = np.array([one.attention_mask for one in read], np.int64)
        given: Mapping[str, Ids] = {
            "input_ids": np.array([one.ids for one in read], np.int64),
            "attention_mask": seen,
            "token_type_ids": np.zeros_like(seen),
        }
        states: Floats = self._session.run(None, {name: given[name] for name in self._takes})[0]
        mean = (states * seen[:, :, None]).sum(axis=1) / np.maximum(seen.sum(axis=1, keepdims=True), 1)
        return (mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)).astype(np.float32)

    def _length(self) -> int:
        try:
            return self._vectors(["dimension"]).shape[1]
        except Exception as error:  # of the runtime or of numpy, by what the model is instead
            raise ModelSetupError(self._name, f"`{MODEL}` is no sentence encoder: {error}") from error

    def _bytes(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except OSError as error:
            raise ModelSetupError(self._name, f"`{name}` cannot be read: {error.strerror or error}") from error

    def _model(self, threads: int) -> Any:
        try:
            import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
        except ImportError as error:
            raise ModelSetupError(self._name, f"it needs onnxruntime; run {INSTALL}") from error
        runtime: Any = onnxruntime
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # a layer is a guest in its process
        try:
            return runtime.InferenceSession(str(self._folder / MODEL), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its errors have no common base
            raise ModelSetupError(self._name, f"`{MODEL}` is nothing that onnxruntime can run: {error}") from error

    def _tokenizer(self) -> Any:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ModelSetupError(self._name, f"it needs tokenizers; run {INSTALL}") from error
        kind: Any = Tokenizer
        try:
            tokens = kind.from_file(str(self._folder / TOKENIZER))
        except Exception as error:  # it raises plain ones
            raise ModelSetupError(self._name, f"`{TOKENIZER}` is no tokenizer: {error}") from error
        tokens.enable_truncation(READ)
        tokens.enable_padding()
        return tokens


__all__ = ["OnnxEmbedder"]
