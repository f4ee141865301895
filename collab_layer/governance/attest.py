"""A receipt to the bytes that are signed, a signature, and back: does it hold?

In:   a receipt and an Ed25519 key; or a text that claims to be a receipt.
Out:  the signed receipt; or the receipt that the text is, if its signature holds.
Pure: no clock, no I/O, no randomness (Ed25519 signatures have none).
Signed is the JSON of the receipt without `signature`: keys sorted, no white space, ASCII. That
is what `jq -cjS 'del(.signature)'` prints.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import ValidationError

from collab_layer.errors import CollabError, InputError, ReceiptError
from collab_layer.types.erasure import Erased, ErasureReceipt

LISTED = 2_000
"""Hashes of one kind that a receipt lists; of more it holds one digest."""


def hashed(salt: str, id_: str) -> str:
    """The salted hash of an id, 64 hexadecimal digits: `printf %s "$salt$id" | sha256sum`."""
    return hashlib.sha256((salt + id_).encode()).hexdigest()


def erased(ids: Mapping[str, Iterable[str]], salt: str) -> dict[str, Erased]:
    """What a receipt says of the ids of each kind; kinds without any are left out."""
    out: dict[str, Erased] = {}
    for kind in sorted(ids):
        found = sorted({hashed(salt, id_) for id_ in ids[kind]})
        if len(found) > LISTED:
            lines = "".join(f"{one}\n" for one in found)
            out[kind] = Erased(count=len(found), digest=hashlib.sha256(lines.encode()).hexdigest())
        elif found:
            out[kind] = Erased(count=len(found), hashes=tuple(found))
    return out


def sign(receipt: ErasureReceipt, key: Ed25519PrivateKey) -> ErasureReceipt:
    """The receipt with who signed it, and the signature."""
    named = receipt.model_copy(update={"key": public(key), "signature": None})
    signature = key.sign(body(named.model_dump(mode="json")))
    return named.model_copy(update={"signature": encoded(signature)})


def verify(text: str | bytes, key: str | None = None) -> ErasureReceipt:
    """Read a receipt and check its signature.

    Args:
        text: The JSON of a receipt.
        key: The public key that must have signed it, as `public` or `pem` gives it. None takes
            the one that the receipt names: then nobody changed it since, whoever signed it.

    Raises:
        ReceiptError: It is no whole receipt, it was changed, or somebody else signed it.
        InputError: The key is none.
    """
    expected = None if key is None else read_key(key)
    raw, receipt = _read(text)
    if receipt.key is None or receipt.signature is None:
        raise ReceiptError("it was not signed yet; ask for it again with `collab receipt show`")
    try:
        signer = Ed25519PublicKey.from_public_bytes(decoded(receipt.key))
        signature = decoded(receipt.signature)
    except ValueError as error:
        raise ReceiptError("its key or its signature is damaged") from error
    if expected is not None and _raw(expected) != _raw(signer):
        raise ReceiptError("another key signed it than the one given")
    try:
        signer.verify(signature, body(raw))
    except InvalidSignature as error:
        raise ReceiptError("it was changed after it was signed") from error
    return receipt


def public(key: Ed25519PrivateKey) -> str:
    """The public part, 32 bytes in base64."""
    return encoded(_raw(key.public_key()))


def pem(key: Ed25519PrivateKey) -> str:
    """The public part as PEM, as `openssl` reads it."""
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(encoding, form).decode()


def read_key(text: str) -> Ed25519PublicKey:
    """A public key in base64 or PEM.

    Raises:
        InputError: Neither, or not of Ed25519.
    """
    try:
        if "BEGIN" in text:
            found = serialization.load_pem_public_key(text.encode())
            if isinstance(found, Ed25519PublicKey):
                return found
        else:
            return Ed25519PublicKey.from_public_bytes(base64.b64decode(text.strip(), validate=True))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError("this is no public key; pass what `collab receipt key` prints") from error
    raise InputError("this is no public key of Ed25519; pass what `collab receipt key` prints")


def _read(text: str | bytes) -> tuple[dict[str, Any], ErasureReceipt]:
    try:
        raw = json.loads(text, object_pairs_hook=once)
        return raw, ErasureReceipt.model_validate(raw)
    except (ValidationError, ValueError, RecursionError, CollabError) as error:
        raise ReceiptError("it is no whole receipt; it was cut off, or is something else") from error


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that stands twice: two readers might take two values for it."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field stands twice")
    return found


def body(raw: Mapping[str, Any]) -> bytes:
    """The bytes that are signed: JSON without `signature`, sorted, without white space, in ASCII."""
    signed = {name: value for name, value in raw.items() if name != "signature"}
    return json.dumps(signed, sort_keys=True, separators=(",", ":")).encode()


def _raw(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def decoded(text: str) -> bytes:
    """Refuse the further texts that base64 has for the same bytes."""
    value = base64.b64decode(text, validate=True)
    if encoded(value) != text:
        raise ValueError("not the one text for these bytes")
    return value


def encoded(value: bytes) -> str:
    """Bytes in base64."""
    return base64.b64encode(value).decode()
