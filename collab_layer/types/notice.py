"""What an owner published: a safe wording for more than may read its memories."""

from __future__ import annotations

from collab_layer.types.entity import Entity, Value
from collab_layer.types.time import UtcTime

MAX_CHARACTERS = 2_000
"""Of a wording."""


class Notice(Value):
    """A wording that an owner chose, and whom it is for.

    Attributes:
        id: Opaque; `explain` names its sources to those who may know them, `revoke` and `forget` end it.
        owner: Who published it; readers are told.
        to: An entity, a group, a kind such as `kind:agent`, or `tenant`.
        text: The words, on one line.
        purpose: Only readers acting for this purpose; any purpose if `None`.
        until: Ends by itself at this time.
        at: When it was published.
    """

    id: str
    owner: Entity
    to: str
    text: str
    purpose: str | None = None
    until: UtcTime | None = None
    at: UtcTime


__all__ = ["MAX_CHARACTERS", "Notice"]
