"""Requests and answers, held to the SDK's own types."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ValidationError

Json = dict[str, Any]
Reply = tuple[int, Json]


class ContractError(Exception):
    """A request that breaks the contract, with the answer it gets."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param


@dataclass(frozen=True)
class Call:
    """A request that reached a known route."""

    operation: str
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    body: Json
    once: str | None


def unknown_fields(value: object, path: str = "") -> list[str]:
    """The paths of fields that no type of the SDK declares; the types themselves let them through."""
    if isinstance(value, list):
        return [found for at, item in enumerate(value) for found in unknown_fields(item, f"{path}[{at}]")]
    if not isinstance(value, BaseModel):
        return []
    paths = [f"{path}.{name}" for name in value.model_extra or {}]
    for name in type(value).model_fields:
        paths += unknown_fields(getattr(value, name), f"{path}.{name}")
    return paths


def parse(model: type[BaseModel], value: object, param: str) -> Any:
    """Parse a part of a request strictly."""
    try:
        parsed = model.model_validate(value)
    except ValidationError as error:
        raise ContractError(400, "validation", str(error), param) from error
    unknown = unknown_fields(parsed, model.__name__)
    if unknown:
        raise ContractError(400, "unknown_field", ", ".join(unknown), unknown[0])
    return parsed


def answer(model: type[BaseModel], value: Json) -> Json:
    """Check an answer against the SDK's type, as strictly as a request."""
    unknown = unknown_fields(model.model_validate(value), model.__name__)
    if unknown:
        raise AssertionError(f"the contract server made up {', '.join(unknown)}")
    return value


def new_id() -> str:
    """An id, as the service makes them."""
    return str(uuid.uuid4())


def now() -> str:
    """The time, as the API writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def moment(text: str) -> datetime:
    """A stored time; one without a zone is UTC."""
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def checked_time(value: str | None, param: str) -> str | None:
    """A time in a request must be RFC 3339, with a zone."""
    if value is None:
        return None
    try:
        if datetime.fromisoformat(value).tzinfo is not None:
            return value
    except ValueError:
        pass
    raise ContractError(400, "validation", f"{param} is no RFC 3339 time", param)
