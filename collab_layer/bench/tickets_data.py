"""Solved tickets: what was asked, what was done, and a second opinion on which are alike.

In:   a folder: STATE-Bench's training trajectories as published, or `tickets.jsonl`.
Out:  a `TicketSet`; what was done comes from tool calls and their results, never from prose.
Never: a name of a file or a scenario in any text that a store gets to see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, Field

from collab_layer.bench.files import archive, checked, digest, folder_names, lines, parsed, read
from collab_layer.errors import DataSetError

ARCHIVE = "state_bench_train_trajectories.tar.gz"
UNPACKED = "train_task_trajectories"
CUSTOM = "tickets.jsonl"
MIN_TICKETS = 40

_READS = ("get_", "search_", "check_", "validate_")
_POLICY = ("topic", "cabin_class", "route_type")
_WHY = ("reason", "change_reason")
_HOW = ("resolution", "refund_method", "shipping_option")
_FEES = frozenset((
    "restocking_fee", "cancellation_fee", "change_fee", "shipping_clawback", "bulk_clawback", "repeat_surcharge",
    "paid_return_shipping_fee", "fare_difference", "gift_wrap_fee", "cost",
))  # fmt: skip
_ID = re.compile(r"\b(?:[A-Z]{1,5}-[A-Z0-9-]*\d+|(?:user|cust|shop)_\w+)\b")
_WORDS = re.compile(r"[^\W_]+")
_COMMON = frozenset((
    "hard", "challenge", "spare", "compound", "edge", "strategy", "the", "a", "an", "of", "on", "no", "not", "with",
    "and", "or", "to", "in", "for", "vs", "only", "then", "without", "after", "before", "all", "one", "two", "three",
))  # fmt: skip
"""Words of file names that say how hard a case is, or nothing."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """One solved case.

    Attributes:
        id: Unique in its set.
        group: Cases of different groups are never alike.
        text: What was asked first, in the customer's words, without ids.
        did: What was decided and done, one short word group each.
        scenario: Independent labels of what it was about; never in any text. May be empty.
    """

    id: str
    group: str
    text: str
    did: frozenset[str]
    scenario: frozenset[str]


@dataclass(frozen=True, slots=True)
class TicketSet:
    """Solved cases, and the digest of the files they come from."""

    name: str
    tickets: Sequence[Ticket]
    sha256: str


class _Call(BaseModel):
    name: str
    arguments: dict[str, Any]
    result: Any = None

    @property
    def answer(self) -> dict[str, Any]:
        """The result where it is an object."""
        held: object = self.result
        return cast("dict[str, Any]", held) if isinstance(held, dict) else {}


class _Turn(BaseModel):
    role: str
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Trajectory(BaseModel):
    conversation: list[_Turn] = Field(min_length=1)


class _Row(BaseModel):
    id: str = Field(min_length=1, max_length=200)
    group: str = Field(default="all", min_length=1, max_length=200)
    text: str = Field(min_length=1, max_length=100_000)
    did: list[str] = Field(min_length=1, max_length=60)
    scenario: list[str] = Field(default_factory=list, max_length=60)


def load_tickets(folder: Path) -> TicketSet:
    """Read the set in `folder`, recognised by its file names.

    Raises:
        DataSetError: Nothing known is there, or a file is damaged; one sentence says which.
    """
    names = folder_names(folder)
    if CUSTOM in names:
        return _large_enough(_custom(folder))
    if ARCHIVE in names:
        return _large_enough(_trajectories(archive(folder / ARCHIVE, ".json")))
    found = sorted(path for path in folder.rglob("*.json") if UNPACKED in path.parts)
    if found:
        return _large_enough(_trajectories({path.relative_to(folder).as_posix(): read(path) for path in found}))
    raise DataSetError(f"`{folder}` holds no tickets: expected {ARCHIVE}, a folder {UNPACKED}, or {CUSTOM}")


def slug(said: str) -> str:
    """A decision as the id of an entity: small letters and digits, joined by `-`."""
    return "-".join(_WORDS.findall(said.lower()))[:200]


def _large_enough(data: TicketSet) -> TicketSet:
    if len(data.tickets) < MIN_TICKETS:
        raise DataSetError(f"only {len(data.tickets)} tickets, at least {MIN_TICKETS} are needed to measure")
    if not any(len(ticket.did) > 1 for ticket in data.tickets):
        raise DataSetError("no ticket has more than one decision, so that none can be told from another")
    return data


def _custom(folder: Path) -> TicketSet:
    text = read(folder / CUSTOM)
    tickets: dict[str, Ticket] = {}
    for line, row in lines(CUSTOM, text, _Row):
        if row.id in tickets:
            raise DataSetError(f"`{CUSTOM}` line {line}: ticket {row.id!r} appears twice")
        did = frozenset(slug(said) for said in row.did) - {""}
        if not did or not row.text.strip():
            raise DataSetError(f"`{CUSTOM}` line {line}: ticket {row.id!r} has no word in `text` or in `did`")
        tickets[row.id] = Ticket(row.id, row.group, row.text, did, frozenset(row.scenario))
    return TicketSet("custom", list(tickets.values()), digest({CUSTOM: text}))


def _trajectories(files: Mapping[str, str]) -> TicketSet:
    tickets: dict[tuple[str, str], Ticket] = {}
    called = False
    for path in sorted(files):
        *_, group, name = ["", *path.split("/")]
        held = checked(path, parsed(path, files[path]), _Trajectory).conversation
        key = (group, name.removesuffix(".json"))
        if key in tickets:
            raise DataSetError(f"`{path}`: another trajectory of `{group}` has the same name")
        called |= any(turn.tool_calls for turn in held)
        tickets[key] = _ticket(*key, path, held)
    if not called:
        raise DataSetError(f"none of the {len(files)} trajectories has a tool call in `tool_calls`; not this layout")
    return TicketSet("statebench", list(tickets.values()), digest(files))


def _ticket(group: str, name: str, path: str, held: Sequence[_Turn]) -> Ticket:
    asked = next((turn.content for turn in held if turn.role == "user" and (turn.content or "").strip()), None)
    if asked is None:
        raise DataSetError(f"`{path}` has no message of a user")
    scenario = frozenset(word for word in _WORDS.findall(name.lower()) if not word.isdigit() and word not in _COMMON)
    calls = [call for turn in held for call in turn.tool_calls or ()]
    return Ticket(f"{group}/{name}", group, " ".join(_ID.sub("", asked).split()), _did(calls), scenario)


def _did(calls: Sequence[_Call]) -> frozenset[str]:
    found = {slug(said) for call in calls for said in _decisions(call)}
    if not any(_writes(call) for call in calls):
        found.add("no-write")
    return frozenset(found)


def _decisions(call: _Call) -> Iterator[str]:
    """What one call decided: which policy was read, what was written and why, what it cost, what was refused."""
    result = call.answer
    if result.get("error"):
        yield f"error {call.name}"
    elif result.get("status") == "rejected":
        yield f"refused {call.name}"
    elif call.name == "get_policies":
        yield " ".join(["policy", *_texts(call.arguments, _POLICY)])
    elif call.name == "validate_promo":
        yield f"promo {'valid' if result.get('valid') else 'invalid'}"
    elif call.name == "check_compatibility":
        yield f"compatible {'yes' if result.get('compatible') else 'no'}"
    elif call.name == "get_warranty_status":
        state = "active" if result.get("is_active") else "expired" if result.get("has_warranty") else "none"
        yield f"warranty {state}"
    elif call.name == "get_flight_status":
        yield f"flight {result.get('status')}"
    elif _writes(call):
        yield " ".join([call.name, *_texts(call.arguments, _WHY), *_texts(result, _HOW)])
        yield from (f"fee {name}" for name in sorted(_FEES) if _positive(result.get(name)))


def _writes(call: _Call) -> bool:
    """Whether a call changed something: confirmed where it asks to be, not previewed, not refused."""
    result = call.answer
    done = call.arguments.get("confirm", True) and result.get("status") not in ("preview", "rejected")
    return bool(done) and not call.name.startswith(_READS) and not result.get("error")


def _texts(held: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [held[name] for name in names if isinstance(held.get(name), str) and held[name]]


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and value > 0


__all__ = ["ARCHIVE", "CUSTOM", "Ticket", "TicketSet", "load_tickets", "slug"]
