"""What was erased."""

from __future__ import annotations

from pydantic import Field

from collab_layer.types.entity import Value
from collab_layer.types.time import UtcTime


class ErasureReceipt(Value):
    """What one `forget` removed from our database, descendants included.

    Attributes:
        id: Opaque id of the receipt.
        subject: What was to be forgotten, as a salted hash: a receipt keeps no personal data.
        at: When it was committed.
        removed: Rows removed, by table.
        generation: The fence: work planned before it is dropped.
        pending: Deliveries in stores that a worker still has to retract.
    """

    id: str
    subject: str
    at: UtcTime
    removed: dict[str, int] = Field(default_factory=dict)
    generation: int = 0
    pending: int = 0


__all__ = ["ErasureReceipt"]
