"""Owners whose memories everybody in the tenant may use, whoever reads and for whatever purpose.

In:   grants in force, a moment.
Out:  an `Audience` of nobody in particular: a level per owner, and until when it holds.
Pure: no clock, no I/O.

What is made once for all readers, as item edges are, may rest on these owners alone: each reader
of it could have read each of them. An owner that denies anybody anything is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable

from collab_layer.governance.grants import Audience, GrantRow, folded
from collab_layer.types.scope import EVERYONE

ANYBODY = -2
"""The reader of the commons: an id that no entity has."""


def commons(grants: Iterable[GrantRow], now: int) -> Audience:
    """Resolve grants for a reader that is granted nothing of its own."""
    return folded(
        grants, now, ANYBODY, meant=lambda grant: grant.denied or _for_all(grant), within=lambda g: g.purposes is None
    )


def _for_all(grant: GrantRow) -> bool:
    return grant.audience == EVERYONE and grant.purpose is None and grant.purposes is None


__all__ = ["ANYBODY", "commons"]
