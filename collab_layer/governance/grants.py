"""Grants and a reader to what the reader may use of each owner.

In:   grants in force, who reads, in which groups, for what, at what moment.
Out:  an `Audience`: a level per owner, and until when that answer holds.
Pure: no clock, no I/O. Entities are dense ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from collab_layer.types.graph import Bools, Ids, Levels
from collab_layer.types.scope import EVERYONE, Level
from collab_layer.types.time import FOREVER


@dataclass(frozen=True, slots=True)
class GrantRow:
    """One grant as it holds today; `owner` None is the tenant's policy.

    Attributes:
        created: When it was made, microseconds.
        purposes: Only for one of these, whatever it says itself; None sets no limit.
        ceiling: It gives nothing: no grant gives more of the owner than this, and none for another purpose.
    """

    owner: int | None
    audience: str
    level: Level
    purpose: str | None
    until: int
    denied: bool
    created: int = 0
    purposes: frozenset[str] | None = None
    ceiling: bool = False


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: dense id, the names it answers to (itself, its groups, its kind), purpose."""

    id: int
    names: frozenset[str]
    purpose: str | None


@dataclass(frozen=True, slots=True)
class Audience:
    """What one reader may use.

    Attributes:
        reader: Always sees its own.
        default: The level of owners not named.
        named: Owner to level, opt-outs included.
        until: Earliest end of a grant used, microseconds.
    """

    reader: int
    default: Level = Level.NONE
    named: Mapping[int, Level] = field(default_factory=dict[int, Level])
    until: int = FOREVER

    def level(self, owner: int) -> Level:
        """What the reader may use of one owner."""
        if owner == self.reader:
            return Level.RECORDS
        return self.named.get(owner, self.default)

    def levels(self, ids: Ids, is_owner: Bools) -> Levels:
        """The level of each entity, shape (n,); a thing has one only where it was granted by name."""
        out = np.where(is_owner, np.int8(self.default), np.int8(0)).astype(np.int8)
        if self.named and len(ids):
            owners = np.fromiter(self.named, np.int64, len(self.named))
            order = np.argsort(owners)
            values = np.fromiter((int(level) for level in self.named.values()), np.int8, len(owners))
            at = np.searchsorted(owners[order], ids)
            at[at == len(owners)] = 0
            hit = owners[order][at] == ids
            out[hit] = values[order][at[hit]]
        out[ids == self.reader] = Level.RECORDS
        return out

    @property
    def alone(self) -> bool:
        """Whether nobody else can be seen."""
        return self.default == Level.NONE and not any(self.named.values())


def audience(grants: Iterable[GrantRow], reader: Reader, now: int) -> Audience:
    """Resolve grants for one reader.

    An owner's own word beats the tenant's policy in both directions where it denies, and
    adds to it where it grants; among an owner's grants the highest level wins, but a
    denial that names the reader's audience wins over all of them, and nothing is above a ceiling.
    """
    return folded(
        grants, now, reader.id, meant=lambda grant: _meant(grant, reader), within=lambda grant: _for_this(grant, reader)
    )


def folded(
    grants: Iterable[GrantRow],
    now: int,
    reader: int,
    *,
    meant: Callable[[GrantRow], bool],
    within: Callable[[GrantRow], bool],
) -> Audience:
    """What grants and denials come to, under their ceilings.

    Args:
        grants: In force or over.
        now: The present, microseconds.
        reader: Whose audience it is; its own memories are in none.
        meant: Whether a grant or denial is about the reader.
        within: Whether a ceiling lets the reader's purpose through at all.
    """
    default, until = Level.NONE, FOREVER
    named: dict[int, Level] = {}
    most: dict[int, Level] = {}
    denied: set[int] = set()
    for grant in grants:
        if grant.ceiling and grant.owner is not None:
            high = grant.level if within(grant) else Level.NONE
            most[grant.owner] = min(most.get(grant.owner, Level.RECORDS), high)
            continue
        if grant.until <= now or not meant(grant):
            continue
        until = min(until, grant.until)
        if grant.denied:
            if grant.owner is not None:
                denied.add(grant.owner)
        elif grant.owner is None:
            default = max(default, grant.level)
        else:
            named[grant.owner] = max(named.get(grant.owner, Level.NONE), grant.level)
    named = {owner: max(level, default) for owner, level in named.items()}
    named.update((owner, min(named.get(owner, default), high)) for owner, high in most.items())
    named.update(dict.fromkeys(denied, Level.NONE))
    named.pop(reader, None)
    return Audience(reader, default, named, until)


def read_by_others(grants: Iterable[GrantRow], owner: int, now: int) -> Level:
    """The highest level at which anybody else may use the owner.

    A denial of everybody counts; a narrower one leaves the others.
    """
    level, most = Level.NONE, Level.RECORDS
    for grant in grants:
        if grant.ceiling:
            most = min(most, grant.level) if grant.owner == owner else most
            continue
        if grant.until <= now or grant.owner not in (None, owner):
            continue
        if grant.denied:
            if grant.owner == owner and grant.audience == EVERYONE and grant.purpose is None:
                return Level.NONE
        else:
            level = max(level, grant.level)
    return min(level, most)


def _for_this(grant: GrantRow, reader: Reader) -> bool:
    return grant.purposes is None or reader.purpose in grant.purposes


def _meant(grant: GrantRow, reader: Reader) -> bool:
    if grant.audience != EVERYONE and grant.audience not in reader.names:
        return False
    if grant.denied:
        return True
    return _for_this(grant, reader) and (grant.purpose is None or grant.purpose == reader.purpose)
