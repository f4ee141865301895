"""What one organisation tells another: facets without anybody's words, ids or names; and what came in.

A bundle is the whole of what an issuer says to one audience at one time; a later one takes its place.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from collab_layer.types.entity import Entity, Value
from collab_layer.types.time import UtcTime

BUNDLE_FORMAT: Literal["collab-layer/bundle/1"] = "collab-layer/bundle/1"
REVOCATIONS_FORMAT: Literal["collab-layer/revocations/1"] = "collab-layer/revocations/1"
MAX_BYTES = 8 << 20
MAX_FACETS = 1_000
MAX_REVOKED = 10_000
MOST_TRUSTED = 0.9
"""What comes from outside is never trusted like what is one's own."""

BundleId = Annotated[str, Field(pattern=r"^b[0-9a-f]{32}$")]
OpaqueId = Annotated[str, Field(pattern=r"^[0-9a-z]{8,64}$")]


class BundleFacet(Value):
    """That several owners have one thing, or two things together.

    Attributes:
        id: Opaque; the issuer's operator can `explain` it.
        things: One or two things, each named by at least `min_contributors` principals.
        support: In tenths, from 0.1.
    """

    id: OpaqueId
    things: tuple[Entity, ...] = Field(min_length=1, max_length=2)
    support: float = Field(ge=0.1, le=1)


class Bundle(Value):
    """Facets for an audience outside of the tenant, signed.

    Attributes:
        id: Of this bundle; names it when it is revoked.
        series: Opaque; the same for all bundles of one tenant for one audience.
        sequence: Rises within a series.
        issued: When it was made.
        expires: From when on nothing of it may be shown.
        min_contributors: Distinct principals behind each facet, at least.
        facets: The surest first.
        revoked: Earlier bundles of the series that are not to be used any more.
        key: The public key of the issuer, 32 bytes in base64.
        signature: Ed25519 over all other fields, in base64.
    """

    format: Literal["collab-layer/bundle/1"] = BUNDLE_FORMAT
    id: BundleId
    series: OpaqueId
    sequence: int = Field(ge=1, lt=2**62)
    issued: UtcTime
    expires: UtcTime
    min_contributors: int = Field(ge=2, le=1000)
    facets: tuple[BundleFacet, ...] = Field(max_length=MAX_FACETS)
    revoked: tuple[BundleId, ...] = Field(default=(), max_length=MAX_REVOKED)
    key: str | None = None
    signature: str | None = None


class Revocations(Value):
    """Bundles of one series that are not to be used any more, signed by their issuer."""

    format: Literal["collab-layer/revocations/1"] = REVOCATIONS_FORMAT
    series: OpaqueId
    issued: UtcTime
    revoked: tuple[BundleId, ...] = Field(min_length=1, max_length=MAX_REVOKED)
    key: str | None = None
    signature: str | None = None


class Issued(Value):
    """A bundle that this tenant issued.

    Attributes:
        id: What `revoke_bundle` takes.
        to: For whom.
        at: When it was issued.
        expires: When it ends by itself.
        facets: How many it has.
        state: How it stands.
        why: Why it ought to be revoked; None if nothing speaks for that.
    """

    id: str
    to: Entity
    at: UtcTime
    expires: UtcTime
    facets: int
    state: Literal["issued", "expired", "revoked"]
    why: str | None = None


class Imported(Value):
    """What came of an import.

    Attributes:
        issuer: The public key that signed it.
        bundle: Its id; None for a list of revocations.
        trust: How far what it says is trusted.
        taken: Facets that are candidates from now on.
        left_out: Facets that were not taken: they read like orders to a model, or were forgotten here.
        dropped: Facets of earlier or revoked bundles that are gone.
        expires: When it ends by itself.
    """

    issuer: str
    bundle: str | None = None
    trust: float = 0.0
    taken: int = 0
    left_out: int = 0
    dropped: int = 0
    expires: UtcTime | None = None


__all__ = [
    "MAX_BYTES",
    "MAX_FACETS",
    "MOST_TRUSTED",
    "Bundle",
    "BundleFacet",
    "Imported",
    "Issued",
    "Revocations",
]
