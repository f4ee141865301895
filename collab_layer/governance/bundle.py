"""What may be told outside of a tenant, signed; and whether what comes from outside holds.

In:   grants, names of things, who holds what; a key; or a text that claims to be a bundle.
Out:  who consents, what may be named, how sure it is; a signed value; or the value a text is.
Pure: no clock, no I/O. Nothing but kinds and names of things, counts rounded to tenths and opaque ids
leaves; a name is told only where enough principals use it, where it is no sentence, and where it does
not hold the name of an owner.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import ValidationError

from collab_layer.errors import (
    BundleExpiredError,
    BundleFormatError,
    BundleReplayedError,
    BundleRevokedError,
    BundleSignatureError,
    BundleSizeError,
    CollabError,
    InputError,
    UnknownIssuerError,
)
from collab_layer.governance import attest
from collab_layer.governance.grants import GrantRow
from collab_layer.types.bundle import BUNDLE_FORMAT, MAX_BYTES, MOST_TRUSTED, REVOCATIONS_FORMAT, Bundle, Revocations
from collab_layer.types.entity import OWNER_KINDS, Entity
from collab_layer.types.scope import EVERYONE
from collab_layer.types.time import micros

MAX_NAME, MAX_WORDS = 48, 5
"""A longer name is a sentence of somebody, not a name."""
AHEAD_S = 86_400
"""How far an issuer's clock may run ahead of ours, in seconds."""

Signed = TypeVar("Signed", Bundle, Revocations)


def consenting(grants: Iterable[GrantRow], audience: str, now: int) -> frozenset[int]:
    """Owners that granted this very audience something, and denied it nothing.

    What is granted to the tenant, to a kind or by the tenant's policy stays inside.
    """
    granted: set[int] = set()
    denied: set[int] = set()
    for grant in grants:
        if grant.owner is None or grant.until <= now:
            continue
        if grant.denied:
            denied |= {grant.owner} if grant.audience in (audience, EVERYONE) else set()
        elif grant.audience == audience and grant.purpose is None and grant.purposes is None and grant.level:
            granted.add(grant.owner)
    return frozenset(granted - denied)


def nameable(thing: Entity, words: Sequence[str], owners: Collection[frozenset[str]]) -> bool:
    """Whether the name of a thing may be told outside.

    Args:
        thing: Which.
        words: The words of its name, in lower case.
        owners: The words of each owner's names; a name that holds all words of one is not told.
    """
    if thing.kind in OWNER_KINDS or not words or len(thing.id) > MAX_NAME or len(words) > MAX_WORDS:
        return False
    mine = frozenset(words)
    return not any(owner <= mine for owner in owners if owner)


def support(count: int, everybody: int, *, minimum: int, delta: float) -> float:
    """How sure it is that something is held by `count` of `everybody`, in tenths from 0.1.

    `min(count / everybody, (count - minimum + 1) * step)`, `step` being delta in tenths: where one
    principal comes or goes it moves by one step at most, beside its own share.
    """
    step = max(0.1, int(delta * 10 + 1e-9) / 10)
    raw = min(count / everybody, (count - minimum + 1) * step, 1.0)
    return max(1, int(raw * 10 + 1e-9)) / 10


def sign(value: Signed, key: Ed25519PrivateKey) -> Signed:
    """The value with who signed it, and the signature: over its JSON without `signature`, as for receipts."""
    named = value.model_copy(update={"key": attest.public(key), "signature": None})
    signature = key.sign(attest.body(named.model_dump(mode="json")))
    return named.model_copy(update={"signature": attest.encoded(signature)})


def read(data: bytes) -> Bundle | Revocations:
    """The bundle, or the list of revocations, that a file holds; its signature is that of the key it names.

    Raises:
        BundleSizeError: It is too large to be one.
        BundleFormatError: It is something else, or was cut off.
        BundleSignatureError: It was changed after it was signed, or never was.
    """
    if len(data) > MAX_BYTES:
        raise BundleSizeError(MAX_BYTES)
    try:
        raw = json.loads(data, object_pairs_hook=attest.once)
    except (ValueError, RecursionError) as error:
        raise BundleFormatError("it is no JSON, or was cut off") from error
    known: dict[str, type[Bundle] | type[Revocations]] = {BUNDLE_FORMAT: Bundle, REVOCATIONS_FORMAT: Revocations}
    kind = known.get(str(raw.get("format"))) if isinstance(raw, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  any JSON
    if kind is None:
        raise BundleFormatError("it is neither a bundle nor a list of revocations")
    try:
        value = kind.model_validate_json(data)
    except (ValidationError, CollabError) as error:
        raise BundleFormatError("a field is missing, unknown or out of range") from error
    _check_signature(raw, value)  # pyright: ignore[reportUnknownArgumentType]  checked by the line above
    _check_content(value)
    return value


def trust_in(key: str, given: Mapping[str, float], settings: Mapping[str, float]) -> float:
    """How far an issuer is trusted: what was given for this import, else the setting.

    Raises:
        UnknownIssuerError: Neither names the key.
        InputError: The trust is not in (0, 0.9].
    """
    trust = given.get(key, settings.get(key))
    if trust is None:
        raise UnknownIssuerError(key)
    return checked_trust(trust)


def checked_trust(trust: float) -> float:
    """A trust in what comes from outside.

    Raises:
        InputError: It is not in (0, 0.9].
    """
    if not 0 < trust <= MOST_TRUSTED:
        raise InputError(f"the trust in an issuer must be in (0, {MOST_TRUSTED}], not {trust}")
    return float(trust)


def check_time(bundle: Bundle, now: int) -> None:
    """Refuse what is over, or comes from a clock that runs far ahead.

    Raises:
        BundleExpiredError: It has ended.
        BundleFormatError: It was issued in the future.
    """
    if micros(bundle.expires) <= now:
        raise BundleExpiredError(bundle.id, bundle.expires.isoformat())
    if max(micros(bundle.issued), bundle.sequence) > now + AHEAD_S * 1_000_000:
        raise BundleFormatError("it says that it was issued in the future; compare the clocks")


def check_order(bundle: Bundle, revoked: Collection[str], newest: tuple[int, str] | None) -> bool:
    """Whether a bundle is news: later than the newest of its series.

    Raises:
        BundleRevokedError: Its issuer revoked it.
        BundleReplayedError: A later one was taken already.
    """
    if bundle.id in revoked:
        raise BundleRevokedError(bundle.id)
    if newest is None or bundle.sequence > newest[0]:
        return True
    if (bundle.sequence, bundle.id) == newest:
        return False
    raise BundleReplayedError(bundle.id)


def _check_signature(raw: Mapping[str, Any], value: Bundle | Revocations) -> None:
    if value.key is None or value.signature is None:
        raise BundleSignatureError("it is not signed")
    try:
        signer = Ed25519PublicKey.from_public_bytes(attest.decoded(value.key))
        signer.verify(attest.decoded(value.signature), attest.body(raw))
    except ValueError as error:
        raise BundleSignatureError("its key or its signature is damaged") from error
    except InvalidSignature as error:
        raise BundleSignatureError("it was changed after it was signed") from error


def _check_content(value: Bundle | Revocations) -> None:
    if isinstance(value, Revocations):
        return
    seen: set[tuple[Entity, ...]] = set()
    for facet in value.facets:
        things = tuple(sorted(facet.things))
        bad = any(thing.kind in OWNER_KINDS or len(thing.id) > MAX_NAME for thing in things)
        if bad or len(set(things)) != len(things) or things in seen:
            raise BundleFormatError("a facet names an owner, a sentence, or the same things twice")
        if abs(facet.support * 10 - round(facet.support * 10)) > 1e-9:
            raise BundleFormatError("a support is not in tenths")
        seen.add(things)


__all__ = [
    "check_order",
    "check_time",
    "checked_trust",
    "consenting",
    "nameable",
    "read",
    "sign",
    "support",
    "trust_in",
]
