"""What was erased."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from collab_layer.types.entity import Value
from collab_layer.types.time import UtcTime

FORMAT = "collab-layer/erasure/1"
Action = Literal["forget", "influence", "revoke"]
Outcome = Literal["erased", "pending", "partly", "unable"]


class Erased(Value):
    """The ids of one kind that were erased, as salted hashes.

    Attributes:
        count: How many, >= 1.
        hashes: SHA-256 of salt and id in hexadecimal, sorted; empty where there are more than 2,000.
        digest: Instead of so many hashes: the SHA-256 of all of them, sorted, one a line.
    """

    count: int = Field(ge=1)
    hashes: tuple[str, ...] = ()
    digest: str | None = None


class ErasureReceipt(Value):
    """What one `forget`, `forget_influence` or `revoke` removed, descendants included.

    Names and ids are in it as salted hashes only.

    Attributes:
        format: Of this receipt; `docs/receipts.md` has every field.
        id: Opaque id of the receipt.
        action: What was asked for.
        revision: 1 as issued, 2 once what was pending is done.
        status: `pending` while copies in stores, or bytes of our file, are still to be removed.
        at: When it was committed.
        completed: When the last copy was removed; None while pending.
        salt: Goes before every id that is hashed, 32 hexadecimal digits.
        subject: What was to be forgotten, or the grant, as a salted hash.
        removed: Rows removed from our database, by table.
        erased: What was erased, by kind: `entities` by name, `interactions`, `cards` and `derived`
            by our id, `records` as `store:native id`. Topics are not listed: they are words of texts.
        generation: The fence: work planned before it is dropped.
        stores: Of the owner's own stores that were to erase too, by name: `erased`; `pending`; `partly`,
            it says that it keeps something; `unable`, it promises no erasure.
        pending: Copies in stores that a worker still has to remove; our own file counts as one.
        key: Public key of who signed, 32 bytes in base64.
        signature: Ed25519 over all other fields, 64 bytes in base64; None until it is signed.
    """

    format: Literal["collab-layer/erasure/1"] = FORMAT
    id: str
    action: Action = "forget"
    revision: int = Field(default=1, ge=1)
    status: Literal["pending", "complete"] = "complete"
    at: UtcTime
    completed: UtcTime | None = None
    salt: str = ""
    subject: str
    removed: dict[str, int] = Field(default_factory=dict[str, int])
    erased: dict[str, Erased] = Field(default_factory=dict[str, Erased])
    generation: int = 0
    stores: dict[str, Outcome] = Field(default_factory=dict[str, Outcome])
    pending: int = 0
    key: str | None = None
    signature: str | None = None


__all__ = ["Action", "Erased", "ErasureReceipt", "Outcome"]
