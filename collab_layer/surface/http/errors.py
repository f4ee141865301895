"""What went wrong, as `application/problem+json` (RFC 9457) with our stable code.

In:   one of our errors, of the framework's, or a refusal of the gate.
Out:  a `Problem`. Errors of our own machinery are told in general words: their details name
      files, hosts and stores, and stay in the log.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from math import ceil
from typing import Any

from pydantic import BaseModel, Field
from starlette.responses import Response

from collab_layer import errors

log = logging.getLogger("collab_layer.serve")

MEDIA_TYPE = "application/problem+json"
_OURS = "the service failed at this request; its log says why"
_STORE = "the database did not take the request; its log says why"
_BACKEND = "a memory store behind the service failed; its log says why"
_MODEL = "a language model behind the service failed; its log says why"


class FieldProblem(BaseModel):
    """One thing that is wrong with a request."""

    where: str = Field(description="Path of the field.")
    why: str


class Problem(BaseModel):
    """What went wrong."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable; for programs.")
    retryable: bool = Field(description="Whether the same request may succeed later.")
    errors: list[FieldProblem] | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """How an error is told: its status, and other words than its own."""

    status: int
    words: str | None = None


TOLD: Mapping[type[errors.CollabError], Told] = {
    errors.CollabError: Told(500, _OURS),
    errors.InputError: Told(422),
    errors.UnknownIdError: Told(404),
    errors.TokenRefusedError: Told(401),
    errors.NotPermittedError: Told(403),
    errors.UnsupportedError: Told(501, "a memory store behind the service cannot do that"),
    errors.StoreError: Told(500, _STORE),
    errors.StoreBusyError: Told(503, "the database is busy; try again"),
    errors.StoreFullError: Told(507, "the database is full; nothing was stored"),
    errors.StoreReadOnlyError: Told(500, "the database cannot be written; nothing was stored"),
    errors.StoreUnavailableError: Told(503, "the database cannot be reached; try again"),
    errors.BackendError: Told(502, _BACKEND),
    errors.BackendTimeoutError: Told(504, _BACKEND),
    errors.ModelError: Told(502, _MODEL),
    errors.ModelTimeoutError: Told(504, _MODEL),
    errors.ModelBusyError: Told(503, _MODEL),
    errors.StaleLeaseError: Told(503, "the work was dropped; try again"),
    errors.LayerClosedError: Told(503, "the service is stopping"),
}
"""Every error of ours; one that is not here is told like the nearest above it in the tree."""


class Refused(Exception):
    """The gate lets a request no further.

    Attributes:
        status: Of the response.
        code: Stable, for programs.
        detail: For people.
        retry_after_s: When to try again, in whole seconds; None where that would not help.
    """

    def __init__(self, status: int, code: str, detail: str, retry_after_s: int | None = None) -> None:
        self.status, self.code, self.detail, self.retry_after_s = status, code, detail, retry_after_s
        super().__init__(detail)


@dataclass(frozen=True, slots=True)
class Reply:
    """A problem and the headers that go with it."""

    problem: Problem
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def response(self) -> Response:
        """As bytes; half a surrogate, which no UTF-8 can hold, becomes a question mark."""
        told = self.problem.model_dump(exclude_none=True)
        body = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
        return Response(body, self.problem.status, dict(self.headers), MEDIA_TYPE)


def of_error(error: errors.CollabError) -> Reply:
    """One of our errors; what is not the caller's doing is logged."""
    told = next(TOLD[kind] for kind in type(error).__mro__ if kind in TOLD)
    if told.status >= 500:
        log.error("%s: %s", error.code, error)
    reply = problem(told.status, error.code, told.words or str(error), retryable=error.retryable)
    if told.status == 401:
        return Reply(reply, {"WWW-Authenticate": "Bearer"})
    if told.status != 503 or not error.retryable:
        return Reply(reply)
    after = error.after_s if isinstance(error, errors.ModelBusyError) else None
    return Reply(reply, {"Retry-After": str(max(1, ceil(after or 1)))})


def of_refusal(refused: Refused) -> Reply:
    """A refusal of the gate."""
    after = refused.retry_after_s
    headers = {} if after is None else {"Retry-After": str(after)}
    return Reply(problem(refused.status, refused.code, refused.detail, retryable=after is not None), headers)


def of_status(status: int, headers: Mapping[str, str] | None = None) -> Reply:
    """What the framework itself refuses: no such path, no such method, an unreadable body."""
    code = HTTPStatus(status).name.lower()
    detail = HTTPStatus(status).description or HTTPStatus(status).phrase
    return Reply(problem(status, code, detail, retryable=False), headers or {})


def of_fields(found: Sequence[Any]) -> Reply:
    """What pydantic found wrong, without the values that were sent."""
    wrong = [FieldProblem(where=".".join(str(part) for part in one["loc"]), why=one["msg"]) for one in found[:20]]
    detail = f"`{wrong[0].where}`: {wrong[0].why}" if wrong else "the request cannot be used"
    told = problem(422, errors.InputError.code, detail, retryable=False)
    return Reply(told.model_copy(update={"errors": wrong}))


def problem(status: int, code: str, detail: str, *, retryable: bool) -> Problem:
    """A problem whose title is the name of its status."""
    return Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, code=code, retryable=retryable)
