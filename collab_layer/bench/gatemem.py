"""GateMem, a benchmark of governed memory, as its publisher lays it out.

In:   a folder with `DOMAIN_episodes.jsonl` and `DOMAIN_checkpoints.jsonl`, gzipped or not.
Out:  `Domain`s: episodes with their turns in order, who is related to whom, and what is asked when.
Never: a guess. Anything unexpected is a `DataSetError` before any work begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from collab_layer.bench.files import digest, folder_names, past, read, short
from collab_layer.errors import DataSetError

DOMAINS = ("office", "education")
KINDS = ("utility", "privacy", "safety")
BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
"""Between two turns of an episode without times: only their order means anything."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One principal says something."""

    id: str
    speaker: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Relation:
    """How a principal is tied to a project, a program, a case or another principal.

    Attributes:
        ties: Field to value, such as `project_id` to `project_maple`; `access_scope` is one of them.
    """

    principal: str
    kind: str
    ties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A question after a turn.

    Attributes:
        include: Strings or regular expressions that a useful context holds.
        targets: Strings that must not be told.
    """

    id: str
    kind: str
    after: str
    asker: str
    question: str
    action: str
    include: tuple[str, ...]
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Episode:
    """One story; `roles` names every principal in it."""

    id: str
    roles: Mapping[str, str]
    relations: tuple[Relation, ...]
    turns: tuple[Turn, ...]
    checkpoints: tuple[Checkpoint, ...]


@dataclass(frozen=True, slots=True)
class GateMem:
    """What was found of the benchmark; `sha256` is over the names and contents of the files."""

    domains: Mapping[str, Sequence[Episode]]
    sha256: str


def load(folder: Path) -> GateMem:
    """Read the domains `office` and `education`, whichever are there.

    Raises:
        DataSetError: No such folder, no known domain in it, or a damaged file; one sentence says which.
    """
    folder_names(folder)
    files: dict[str, str] = {}
    domains: dict[str, Sequence[Episode]] = {}
    for domain in DOMAINS:
        paths = [_found(folder, f"{domain}_{part}.jsonl") for part in ("episodes", "checkpoints")]
        found = [path for path in paths if path is not None]
        if len(found) == 1:
            raise DataSetError(f"`{folder}` has `{found[0].name}` but not both files of {domain}")
        if found:
            files |= {path.name: read(path) for path in found}
            domains[domain] = _episodes(*((path.name, files[path.name]) for path in found))
    if not domains:
        raise DataSetError(f"`{folder}` holds no domain of GateMem: expected {DOMAINS[0]}_episodes.jsonl and the like")
    return GateMem(domains, digest(files))


def _found(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _episodes(episodes: tuple[str, str], checkpoints: tuple[str, str]) -> list[Episode]:
    name, text = episodes
    rows: dict[str, _Row] = {}
    for row in _rows(name, text):
        if rows.setdefault(row.text("episode_id"), row) is not row:
            raise row.error(f"episode {short(row.text('episode_id'))} appears twice")
    asked: dict[str, list[_Row]] = {id_: [] for id_ in rows}
    for row in _rows(*checkpoints):
        if row.text("episode_id") not in asked:
            raise row.error(f"episode {short(row.text('episode_id'))} is not in `{name}`; they are not of one download")
        asked[row.text("episode_id")].append(row)
    return [_episode(row, asked[id_]) for id_, row in rows.items()]


def _episode(row: _Row, asked: Sequence[_Row]) -> Episode:
    entities = row.inner("entities")
    roles = {one.text("principal_id"): one.text("role") for one in entities.list("principals")}
    relations = tuple(_relation(one, roles) for one in entities.list("relationships"))
    turns = _turns(row, roles)
    after = {turn.id for turn in turns}
    checkpoints = tuple(_checkpoint(one, roles, after) for one in asked)
    return Episode(row.text("episode_id"), roles, relations, turns, checkpoints)


def _relation(row: _Row, roles: Mapping[str, str]) -> Relation:
    principal = row.one_of("principal_id", roles)
    ties = {key: value for key, value in row.values.items() if isinstance(value, str)}
    return Relation(principal, row.text("type"), {k: v for k, v in ties.items() if k not in ("principal_id", "type")})


def _turns(row: _Row, roles: Mapping[str, str]) -> tuple[Turn, ...]:
    found: list[Turn] = []
    ids: set[str] = set()
    for one in row.list("turns"):
        id_ = one.text("turn_id")
        if id_ in ids:
            raise one.error(f"turn {short(id_)} appears twice")
        ids.add(id_)
        speaker = one.inner("speaker").one_of("principal_id", roles)
        at = one.moment("timestamp") if "timestamp" in one.values else None
        last = found[-1].at if found else BEGIN
        if at is not None and found and at <= last:
            raise one.error(f"turn {short(id_)} is not later than the one before it")
        found.append(Turn(id_, speaker, one.text("text"), last + MINUTE if at is None else at))
    if not found:
        raise row.error("the episode has no turns")
    return tuple(found)


def _checkpoint(row: _Row, roles: Mapping[str, str], turns: set[str]) -> Checkpoint:
    kind = row.one_of("query_type", KINDS)
    spec = row.inner("judge_spec")
    include = spec.texts("include") if kind == "utility" else ()
    for one in include:
        try:
            re.compile(one)
        except re.error as error:
            raise row.error(f"{short(one)} is no regular expression: {error}") from error
    targets = row.texts("leak_targets")
    if kind == "utility" and not include:
        raise row.error("a utility checkpoint asks for nothing: `include` is empty")
    if kind != "utility" and not targets:
        raise row.error(f"a {kind} checkpoint guards nothing: `leak_targets` is empty")
    return Checkpoint(
        id=row.text("checkpoint_id"),
        kind=kind,
        after=row.one_of("as_of_turn_id", turns),
        asker=row.inner("asker").one_of("principal_id", roles),
        question=row.text("query_text"),
        action=row.text("expected_action"),
        include=include,
        targets=targets,
    )


# -- rows of JSON -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """A JSON object, and where it stands."""

    where: str
    values: Mapping[str, Any]

    def error(self, message: str) -> DataSetError:
        return DataSetError(f"{self.where}: {message}")

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"`{key}` must be a text, not {short(repr(value))}")
        return value

    def one_of(self, key: str, known: Sequence[str] | Mapping[str, str] | set[str]) -> str:
        value = self.text(key)
        if value not in known:
            raise self.error(f"`{key}` {short(value)} is not known")
        return value

    def inner(self, key: str) -> _Row:
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.error(f"`{key}` must be an object, not {short(repr(value))}")
        return _Row(self.where, cast("dict[str, Any]", value))

    def list(self, key: str) -> list[_Row]:
        return [_Row(self.where, one) for one in self._items(key, dict, "objects")]

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(one for one in self._items(key, str, "texts") if one.strip())

    def moment(self, key: str) -> datetime:
        try:
            at = datetime.fromisoformat(self.text(key))
        except ValueError as error:
            raise self.error(f"`{key}` {short(self.text(key))} is no time") from error
        return past(self.where, at)

    def _items(self, key: str, kind: type, called: str) -> list[Any]:
        value = cast("list[Any]", self.values.get(key))
        if not isinstance(value, list) or not all(isinstance(one, kind) for one in value):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise self.error(f"`{key}` must be a list of {called}, not {short(repr(value))}")
        return value


def _rows(name: str, text: str) -> Iterator[_Row]:
    for line, content in enumerate(text.splitlines(), start=1):
        if not content.strip():
            continue
        try:
            value = json.loads(content)
        except ValueError as error:
            raise DataSetError(f"`{name}` line {line} is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise DataSetError(f"`{name}` line {line} is no JSON object")
        yield _Row(f"`{name}` line {line}", cast("dict[str, Any]", value))


__all__ = ["DOMAINS", "Checkpoint", "Episode", "GateMem", "Relation", "Turn", "load"]
