"""The OpenAPI 3.1 document: what FastAPI derives, with our problems instead of its own errors.

In:   the application.
Out:  a document that names every status an operation can end with.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from collab_layer.surface.http.errors import MEDIA_TYPE, Problem

OPEN_STATUSES = (500, 503)
STATUSES = (400, 401, 403, 404, 408, 413, 422, 429, 500, 501, 502, 503, 504, 507)


def document(app: FastAPI) -> dict[str, Any]:
    """The document; made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        _, problems = models_json_schema([(Problem, "serialization")], ref_template="#/components/schemas/{model}")
        schemas = made["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas.update(problems["$defs"])
        for operations in made["paths"].values():
            for operation in operations.values():
                _add(operation)
        app.openapi_schema = made
    return app.openapi_schema


def _add(operation: dict[str, Any]) -> None:
    statuses = STATUSES if "security" in operation else OPEN_STATUSES
    schema = {"$ref": "#/components/schemas/Problem"}
    for status in statuses:
        operation["responses"][str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
