"""Owners whose memories everybody in the tenant may use, whoever reads and for whatever purpose.

In:   grants in force, a moment.
Out:  an `Audience` of nobody in particular: a level per owner, and until when it holds.
Pure: no clock, no I/O.

What is made once for all readers, as item edges are, may rest on these owners alone: each reader
of it could have read each of them. An owner that denies anybody anything is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable

from collab_layer.governance.grants import Audience, GrantRow
from collab_layer.types.scope import EVERYONE, Level
from collab_layer.types.time import FOREVER

ANYBODY = -2
"""The reader of the commons: an id that no entity has."""


def commons(grants: Iterable[GrantRow], now: int) -> Audience:
    """Resolve grants for a reader that is granted nothing of its own."""
    default, until = Level.NONE, FOREVER
    named: dict[int, Level] = {}
    most: dict[int, Level] = {}
    denied: set[int] = set()
    for grant in grants:
        if grant.ceiling and grant.owner is not None:
            high = grant.level if grant.purposes is None else Level.NONE
            most[grant.owner] = min(most.get(grant.owner, Level.RECORDS), high)
            continue
        if grant.until <= now:
            continue
        if grant.denied:
            if grant.owner is not None:
                denied.add(grant.owner)
        elif grant.audience == EVERYONE and grant.purpose is None and grant.purposes is None:
            until = min(until, grant.until)
            if grant.owner is None:
                default = max(default, grant.level)
            else:
                named[grant.owner] = max(named.get(grant.owner, Level.NONE), grant.level)
    named = {owner: max(level, default) for owner, level in named.items()}
    named.update((owner, min(named.get(owner, default), high)) for owner, high in most.items())
    named.update(dict.fromkeys(denied, Level.NONE))
    return Audience(ANYBODY, default, named, until)


__all__ = ["ANYBODY", "commons"]
