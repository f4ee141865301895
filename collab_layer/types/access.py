"""Access tokens: a text that lets its bearer act for one entity, in one tenant.

A token reads `collab_TENANT.ID.SECRET`: the tenant in base64url, the id under which the
operator knows it, and 256 random bits. It carries its tenant, so that one look-up by key is
enough. Only `NewToken` ever holds the secret.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from typing import NamedTuple, Self

from pydantic import Field

from collab_layer.types.entity import Entity, Value
from collab_layer.types.time import UtcTime

MAX_TOKEN = 1_024
_FORM = re.compile(r"collab_([A-Za-z0-9_-]{1,700})\.(t[0-9a-f]{16})\.([A-Za-z0-9_-]{43})")


class Token(Value):
    """What the operator may know of a token once it was handed out.

    Attributes:
        id: Opaque; pass it to `revoke_token`.
        principal: The one entity its bearer acts for.
        purpose: What its bearer acts for; compared with the purpose of a grant.
        created: When it was issued.
        until: It ends by itself at this time.
        revoked: When it was taken back; None while it was not.
    """

    id: str
    principal: Entity
    purpose: str | None = None
    created: UtcTime
    until: UtcTime
    revoked: UtcTime | None = None


class NewToken(Token):
    """A token as it is handed out, this once.

    Attributes:
        text: What its bearer sends; kept nowhere, and left out of `repr`.
    """

    text: str = Field(repr=False)


class Bearer(NamedTuple):
    """The parts of a token's text."""

    tenant: str
    id: str
    secret: str

    @classmethod
    def new(cls, tenant: str) -> Self:
        """A token that nobody has seen."""
        return cls(tenant, f"t{secrets.token_hex(8)}", secrets.token_urlsafe(32))

    @classmethod
    def read(cls, text: str) -> Self | None:
        """The parts of a text; None if it is no token. Nothing is verified."""
        found = _FORM.fullmatch(text) if len(text) <= MAX_TOKEN else None
        if found is None:
            return None
        coded, id_, secret = found.groups()
        try:
            tenant = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None
        one = cls(tenant, id_, secret)
        return one if one.text() == text else None  # base64 has several texts for some bytes

    def text(self) -> str:
        """What its bearer sends."""
        coded = base64.urlsafe_b64encode(self.tenant.encode()).decode().rstrip("=")
        return f"collab_{coded}.{self.id}.{self.secret}"

    def __repr__(self) -> str:
        return f"Bearer(tenant={self.tenant!r}, id={self.id!r})"


__all__ = ["Bearer", "NewToken", "Token"]
