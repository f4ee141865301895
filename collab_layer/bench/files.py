"""Files of evaluation sets: read whole, or refused in one sentence.

In:   paths, and the words in them.
Out:  text, checked rows, a digest.
Never: a guess about a damaged file; a file unpacked to the disk. Nothing is run from an archive.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from collab_layer.errors import DataSetError

MAX_BYTES = 1 << 30
"""Of one file, unpacked."""

Row = TypeVar("Row", bound=BaseModel)


def folder_names(folder: Path) -> set[str]:
    """Names of the files in a folder.

    Raises:
        DataSetError: It is not there, is a file, or may not be listed.
    """
    if not folder.is_dir():
        raise DataSetError(f"`{folder}` is not a folder; pass the folder the set was unpacked into")
    try:
        return {path.name for path in folder.iterdir() if path.is_file()}
    except OSError as error:
        raise DataSetError(f"`{folder}` cannot be listed: {error.strerror or error}") from error


def require(folder: Path, names: set[str], wanted: Sequence[str]) -> None:
    """Say which files are missing."""
    missing = [name for name in wanted if name not in names]
    if missing:
        raise DataSetError(f"`{folder}` lacks {', '.join(missing)}")


def read(path: Path) -> str:
    """The whole text of a file, gzipped or not."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataSetError(f"`{path.name}` is no complete gzip file; download it again") from error
    except OSError as error:
        raise DataSetError(f"`{path.name}` cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_BYTES:
        raise DataSetError(f"`{path.name}` has more than {MAX_BYTES} bytes, more than any set that is known here")
    return decoded(path.name, raw)


def decoded(name: str, raw: bytes) -> str:
    """Bytes as UTF-8 that says something."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataSetError(f"`{name}` is not UTF-8 (byte {error.start}); download it again") from error
    if not text.strip():
        raise DataSetError(f"`{name}` is empty")
    return text


def archive(path: Path, ending: str) -> dict[str, str]:
    """The files of a tar archive whose names end so, by name; nothing is written to the disk."""
    found: dict[str, str] = {}
    size = 0
    try:
        with tarfile.open(path) as packed:
            for member in packed:
                if not member.isfile() or not member.name.endswith(ending):
                    continue
                size += member.size
                if size > MAX_BYTES:
                    raise DataSetError(f"`{path.name}` unpacks to more than {MAX_BYTES} bytes")
                if member.name in found:
                    raise DataSetError(f"`{path.name}` holds {short(member.name, 80)} twice")
                opened = packed.extractfile(member)
                found[member.name] = decoded(member.name, b"" if opened is None else opened.read())
    except (EOFError, tarfile.TarError, gzip.BadGzipFile, zlib.error) as error:
        raise DataSetError(f"`{path.name}` is no complete tar archive; download it again") from error
    except OSError as error:
        raise DataSetError(f"`{path.name}` cannot be read: {error.strerror or error}") from error
    return found


def table(name: str, text: str, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a CSV file with their line numbers; every row has every column."""
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        heads = reader.fieldnames or ()
        twice = next((column for at, column in enumerate(heads) if column in heads[:at]), None)
        if twice is not None:
            raise DataSetError(f"`{name}` has the column {short(twice)} twice")
        missing = [column for column in columns if column not in heads]
        if missing:
            raise DataSetError(f"`{name}` has no column {', '.join(missing)}; it has {short(', '.join(heads), 200)}")
        count = 0
        for row in reader:
            if None in row or any(value is None for value in row.values()):  # pyright: ignore[reportUnnecessaryComparison, reportUnnecessaryContains]
                raise DataSetError(f"`{name}` line {reader.line_num}: the number of fields differs from the header")
            count += 1
            yield reader.line_num, row
    except csv.Error as error:
        raise DataSetError(f"`{name}` line {reader.line_num}: {error}") from error
    if not count:
        raise DataSetError(f"`{name}` has a header but no rows")


def parsed(name: str, text: str) -> object:
    """A JSON document."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataSetError(f"`{name}` is no complete JSON; download it again") from error


def checked(name: str, value: object, shape: type[Row], line: int | None = None) -> Row:
    """A value in the shape that is expected; else the first thing that is wrong with it."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = f"`{name}`" if line is None else f"`{name}` line {line}"
        field = ".".join(map(str, first["loc"]))
        raise DataSetError(f"{place}: {f'{field}: ' if field else ''}{first['msg']}") from error


def lines(name: str, text: str, shape: type[Row]) -> Iterator[tuple[int, Row]]:
    """The rows of a JSONL file with their line numbers; blank lines are passed over."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataSetError(f"`{name}` line {number} is no complete JSON") from error
        yield number, checked(name, value, shape, number)


def integer(name: str, line: int, word: str) -> int:
    """A whole number of at most 15 digits."""
    if not (word.isascii() and word.isdigit() and len(word) <= 15):
        raise DataSetError(f"`{name}` line {line}: {short(word)} is no whole number")
    return int(word)


def past(place: str, at: datetime) -> datetime:
    """A time in UTC that is not ahead of the clock by more than a day; without a zone it is taken as UTC.

    Args:
        place: Where it stands, as the error begins.
        at: The time.
    """
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    if at > datetime.now(UTC) + timedelta(days=1):
        raise DataSetError(f"{place}: {at.isoformat()} lies in the future")
    return at


def digest(files: Mapping[str, str]) -> str:
    """Over names and decoded contents, so that a gzipped copy has the digest of the plain one."""
    total = hashlib.sha256()
    for name in sorted(files):
        content = files[name].encode()
        total.update(f"{name.removesuffix('.gz')}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def short(word: str, most: int = 40) -> str:
    """Words as they are quoted in an error, cut after so many characters."""
    return repr(word if len(word) <= most else f"{word[:most]}…")


__all__ = [
    "archive",
    "checked",
    "decoded",
    "digest",
    "folder_names",
    "integer",
    "lines",
    "parsed",
    "past",
    "read",
    "require",
    "short",
    "table",
]
