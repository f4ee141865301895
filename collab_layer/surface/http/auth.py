"""A bearer token to the view of whoever it was issued for.

In:   the headers of a request.
Out:  a layer that acts as that entity, in that tenant, for that purpose. Nobody acts as the
      operator here.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Request, Security
from fastapi.security import HTTPBearer
from starlette.types import Scope

from collab_layer.errors import TokenRefusedError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.types.access import Bearer

VIEW = "collab_view"
"""Where the gate leaves the view in the state of a request."""
SCHEME = HTTPBearer(
    scheme_name="token", bearerFormat="collab", description="From `collab token issue`.", auto_error=False
)


async def enter(layer: AsyncCollabLayer, scope: Scope) -> tuple[AsyncCollabLayer, str]:
    """The view of the bearer, and the name under which its requests are counted.

    Raises:
        TokenRefusedError: No token, several, or one that does not hold.
        StoreError: The database cannot tell.
    """
    text = bearer(scope)
    view = await layer.open_with(text)
    read = Bearer.read(text)
    if read is None or view.principal is None:
        raise TokenRefusedError
    return view, f"{read.tenant}/{read.id}"


def bearer(scope: Scope) -> str:
    """The token of the one Authorization header.

    Raises:
        TokenRefusedError: There is none, or it is none.
    """
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(given) != 1:
        raise TokenRefusedError
    scheme, _, token = given[0].decode("latin-1").partition(" ")
    if scheme.lower() != "bearer":
        raise TokenRefusedError
    return token.strip()


def acting(state: object) -> AsyncCollabLayer:
    """The view that the gate left with a request.

    Raises:
        TokenRefusedError: The request did not pass the gate.
    """
    view = getattr(state, VIEW, None)
    if not isinstance(view, AsyncCollabLayer) or view.principal is None:
        raise TokenRefusedError
    return view


def _acting(request: Request, _: Annotated[object, Security(SCHEME)]) -> AsyncCollabLayer:
    return acting(request.state)


View = Annotated[AsyncCollabLayer, Security(_acting)]
"""Whoever asks, in a route."""
