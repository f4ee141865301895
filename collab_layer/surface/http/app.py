"""The application: routes, errors, and the gate before them.

In:   an open layer and the limits.
Out:  an ASGI application. Interactive pages are left out: they would load scripts from a
      foreign host. No CORS headers: browsers of other origins are not served.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

from collab_layer.config import ServeSettings
from collab_layer.errors import CollabError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.surface.http.errors import of_error, of_fields, of_status
from collab_layer.surface.http.gate import SCHEMA, Gate
from collab_layer.surface.http.openapi import document
from collab_layer.surface.http.routes import health_router, verbs_router


def create_app(layer: AsyncCollabLayer, settings: ServeSettings | None = None, *, mcp: bool = False) -> ASGIApp:
    """Serve a layer.

    Args:
        layer: Open; it stays the caller's to close. Which tenant is served says each token.
        settings: The limits; the defaults if None.
        mcp: Also serve MCP under `/mcp`, behind the same gate.

    Raises:
        InputError: A limit cannot be used.
    """
    used = ServeSettings() if settings is None else settings
    return Gate(_application(layer, used, mcp), layer, used)


def _application(layer: AsyncCollabLayer, settings: ServeSettings, mcp: bool) -> FastAPI:
    mounted = None
    if mcp:
        from collab_layer.surface.mcp.mount import Mounted  # the SDK takes a second to import

        mounted = Mounted(settings.allowed_hosts, settings.max_body_bytes)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        if mounted is None:
            yield
            return
        async with mounted.running():
            yield

    app = FastAPI(
        title="collab_layer",
        summary="A graph between owners, above the memory stores they already use.",
        version=version("collab-layer"),
        openapi_url=SCHEMA,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.include_router(verbs_router)
    app.include_router(health_router(layer))
    if mounted is not None:
        app.router.routes.append(mounted.route)
    app.add_exception_handler(CollabError, _ours)
    app.add_exception_handler(RequestValidationError, _fields)
    app.add_exception_handler(HTTPException, _status)
    app.add_exception_handler(Exception, _unforeseen)
    app.openapi = lambda: document(app)
    return app


async def _ours(_: Request, error: Exception) -> Response:
    return of_error(cast(CollabError, error)).response()


async def _fields(_: Request, error: Exception) -> Response:
    return of_fields(cast(RequestValidationError, error).errors()).response()


async def _status(_: Request, error: Exception) -> Response:
    found = cast(HTTPException, error)
    return of_status(found.status_code, found.headers).response()


async def _unforeseen(_: Request, error: Exception) -> Response:
    return of_status(500).response()  # the framework raises it again, for the log
