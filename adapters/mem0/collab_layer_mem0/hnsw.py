"""Words that lie in Chroma's vector files by accident, removed.

In:   the folder of an embedded Chroma.
Out:  what its vector index saved without ever having written it is zero. Chroma makes room for vectors, does not clear
      it, and saves it along with whatever the process had there before, texts too (chroma issue 7688).
The files are hnswlib's, as Chroma saves them: the numbers of `header.bin` are little-endian.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

_VERSION = 1
_HEADER = struct.Struct("<iQQQQ")
"""Version, offset, room for how many vectors, how many there are, bytes of one with its links."""
_LENGTH = 4
"""Bytes of a vector's length."""
_SPACES = {
    "schema_str": "$.keys.#embedding.float_list.vector_index.config.space",
    "config_json_str": "$.vector_index.hnsw.space",  # before Chroma wrote schemas
}
"""Where a collection says how its vectors are compared: in the first of these columns that there is."""


def blank_unused(folder: Path) -> None:
    """Write zeros over what no vector uses, in the files of every collection. The index in memory is not touched.

    Raises:
        OSError: The files are of a later layout than is known here.
    """
    without = _without_lengths(folder / "chroma.sqlite3")
    for header in folder.glob("*/header.bin"):
        version, _, _, used, size = _HEADER.unpack_from(header.read_bytes())
        if version != _VERSION:
            raise OSError(f"`{header.name}` of Chroma is of version {version}, and known is {_VERSION}")
        _blank(header.with_name("data_level0.bin"), used * size)
        _blank(header.with_name("length.bin"), 0 if header.parent.name in without else used * _LENGTH)


def _without_lengths(file: Path) -> set[str]:
    """Indexes that know no lengths, since only a comparison by cosine needs them: all of that file is chance."""
    with closing(sqlite3.connect(file)) as database:
        there = {row[1] for row in database.execute("PRAGMA table_info(collections)")}
        column = next(name for name in _SPACES if name in there)
        asked = (
            "SELECT segments.id FROM segments JOIN collections ON collections.id = segments.collection "
            f"WHERE json_extract({column}, ?) IN ('l2', 'ip')"
        )
        return {str(id_) for (id_,) in database.execute(asked, (_SPACES[column],))}


def _blank(file: Path, start: int) -> None:
    """Zeros from a byte on to the end of a file, which stays as long as it is."""
    with file.open("r+b") as opened:
        length = opened.seek(0, os.SEEK_END) - start
        opened.seek(start)
        if length > 0 and any(opened.read()):
            opened.seek(start)
            opened.write(bytes(length))
            opened.flush()
            os.fsync(opened.fileno())


__all__ = ["blank_unused"]
