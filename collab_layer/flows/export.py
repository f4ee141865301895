"""What owners let go outside, to a signed bundle; bundles to a list of those that are revoked.

load:   who granted the audience something, what they have, what the audience was told before;
stages: support, publish: a facet changes by no contributor or by enough of them, once per epoch;
save:   the facets as derived items told to the audience, so that lineage, the injection log and
        erasure cover them like any other; and which of them the bundle holds.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sqlalchemy import Connection, insert

from collab_layer.errors import InputError, StaleLeaseError
from collab_layer.flows.tools import Tools
from collab_layer.governance import bundle as rules
from collab_layer.governance.publish import Decision, Published, decide, epoch_of
from collab_layer.graph import aliases, bundles, derived, lineage, names, policy
from collab_layer.graph.bundles import Has, IssuedRow
from collab_layer.graph.derived import Item, item_id
from collab_layer.graph.ids import next_id
from collab_layer.graph.tables import audit
from collab_layer.stages.quarantine import quarantined
from collab_layer.stages.tokens import WORD, lower
from collab_layer.types.bundle import MAX_FACETS, Bundle, BundleFacet, Issued, Revocations
from collab_layer.types.entity import OWNER_KINDS, Entity
from collab_layer.types.facet import FacetKind
from collab_layer.types.scope import Level, Scope, Sharing
from collab_layer.types.time import DAY, moment

MADE_BY = "export"
TOP = 200
"""Things, those that most have first, of which pairs are looked at."""

Things = tuple[int, ...]


async def export(tools: Tools, scope: Scope, to: Entity, days: int) -> Bundle:
    """Sign what the audience may be told now.

    Raises:
        InputError: The audience is an owner or a group of the tenant.
        KeyFileError: The key cannot be used; nothing was stored.
    """
    if to.kind in OWNER_KINDS:
        raise InputError(f"`{to}` is of this tenant; name who is outside, such as `federation:partners`")
    tools.keys.key()  # before anything is noted as told
    made, generation = await tools.in_thread(_export, tools, scope.tenant, to, days)
    await tools.handed(scope, to, "delivery", [facet.id for facet in made.facets], generation)
    return made


async def revoke(tools: Tools, tenant: str, id_: str) -> Revocations:
    """Revoke a bundle, and sign the list of all that are revoked of its series.

    Raises:
        UnknownIdError: No such bundle was issued.
    """
    return await tools.in_thread(_revoke, tools, tenant, id_)


async def listed(tools: Tools, tenant: str) -> list[Issued]:
    """Every bundle that was issued, newest first, and whether it ought to be revoked."""
    return await tools.in_thread(_listed, tools, tenant)


@dataclass(frozen=True, slots=True)
class _World:
    """What the consenting owners have: things by principal, and the sources of each."""

    names: Mapping[int, Entity]
    has: Mapping[int, frozenset[int]]
    sources: Mapping[int, Sequence[Has]]
    principals: int


def _export(tools: Tools, tenant: str, to: Entity, days: int) -> tuple[Bundle, int]:
    now = tools.now()
    with tools.store.database.write() as connection:
        names.share_with_erasure(connection, tenant)
        audience = names.always(connection, tenant, to)
        generation = names.lock(connection, tenant)
        least = policy.strictest_minimum(connection, tenant, now)
        sharing = policy.sharing(connection, tenant).model_copy(update={"min_contributors": least})
        world = _world(connection, tenant, to, now)
        items = _published(connection, tenant, to, audience, world, sharing, now, now + days * DAY)
        before = bundles.listed(connection, tenant, audience)
        sequence = max([now, *(old.sequence + 1 for old in before[:1])])
        id_ = "b" + secrets.token_hex(16)
        expires = now + days * DAY
        fresh = IssuedRow(id_, audience, sequence, expires, tuple(item.id for item, _ in items), None)
        bundles.add(connection, tenant, fresh)
        _note(connection, tenant, audience, "export", id_, now)
        made = Bundle(
            id=id_,
            series=_series(names.salt(connection, tenant), to),
            sequence=sequence,
            issued=moment(now),
            expires=moment(expires),
            min_contributors=sharing.min_contributors,
            facets=tuple(BundleFacet(id=item.id, things=things, support=item.confidence) for item, things in items),
            revoked=tuple(old.id for old in before if old.revoked is not None),
        )
        return rules.sign(made, tools.keys.key()), generation


def _world(connection: Connection, tenant: str, to: Entity, now: int) -> _World:
    """Things that may be named, and who has them, all aliases of a principal as one."""
    owners = rules.consenting(policy.rows(connection, tenant, now), str(to), now)
    party = aliases.of(connection, tenant)
    held = bundles.holdings(connection, tenant, owners, now)
    called = names.names_of(connection, tenant, [one.thing for one in held])
    own = [frozenset(_words(word)) for pair in bundles.words_of_owners(connection, tenant) for word in pair]
    things = {id_: Entity.parse(name) for id_, name in called.items()}
    good = {
        id_: thing
        for id_, thing in things.items()
        if rules.nameable(thing, _words(thing.id), own) and quarantined(thing.id.replace("-", " ")) is None
    }
    has: dict[int, set[int]] = {}
    sources: dict[int, list[Has]] = {}
    for one in held:
        if one.thing in good:
            has.setdefault(one.thing, set()).add(party.get(one.owner, one.owner))
            sources.setdefault(one.thing, []).append(one)
    principals = {party.get(owner, owner) for owner in owners}
    return _World(good, {thing: frozenset(who) for thing, who in has.items()}, sources, len(principals))


def _words(text: str) -> list[str]:
    return [lower(match.group()) for match in WORD.finditer(text.replace("-", " ").replace("_", " "))]


def _candidates(world: _World, minimum: int) -> list[tuple[Things, frozenset[int]]]:
    """Things and pairs of things that enough principals have, those of most first."""
    enough = {thing: who for thing, who in world.has.items() if len(who) >= minimum}
    order = sorted(enough, key=lambda thing: (-len(enough[thing]), world.names[thing]))
    found: list[tuple[Things, frozenset[int]]] = [((thing,), enough[thing]) for thing in order]
    for one, other in combinations(order[:TOP], 2):
        both = enough[one] & enough[other]
        if len(both) >= minimum:
            found.append(((one, other), both))
    found.sort(key=lambda pair: (-len(pair[1]), len(pair[0]), [world.names[thing] for thing in pair[0]]))
    return found[:MAX_FACETS]


def _published(
    connection: Connection,
    tenant: str,
    to: Entity,
    audience: int,
    world: _World,
    sharing: Sharing,
    now: int,
    expires: int,
) -> list[tuple[Item, tuple[Entity, ...]]]:
    """The facets that may be told now: fresh ones, and those that stay as they were told last."""
    party = aliases.of(connection, tenant)
    epoch, salt = epoch_of(now, sharing.epoch_hours), names.salt(connection, tenant)
    wanted = {_key(world, things, salt): (things, who) for things, who in _candidates(world, sharing.min_contributors)}
    before = derived.published(connection, tenant, list(wanted))
    every = [item.id for items in before.values() for item in items]
    gone = derived.is_erased(connection, tenant, every) if every else set[str]()
    out: list[tuple[Item, tuple[Entity, ...]]] = []
    fresh: list[Item] = []
    for key, (things, who) in wanted.items():
        told: dict[str, Published] = {}
        for one in before[key]:
            behind = frozenset(party.get(owner, owner) for owner in one.principals)
            told[one.id] = Published(behind, one.epoch, one.id in gone, one.gone, one.cut)
        old = next((one for one in before[key] if one.owner == audience), None)
        last = None if old is None else told[old.id]
        everybody = frozenset[int]().union(*(world.has[thing] for thing in things))
        choice = decide(
            last, who, epoch=epoch, minimum=sharing.min_contributors, permitted=everybody, told=told.values()
        )
        named = tuple(world.names[thing] for thing in things)
        if choice is Decision.PUBLISH:
            item = _item(world, salt, to, audience, key, things, who, party, sharing, now, expires, epoch)
            fresh.append(item)
            out.append((item, named))
        elif choice is Decision.KEEP and old is not None:
            out.append((old, named))
    derived.put(connection, tenant, fresh)
    return out


def _item(
    world: _World,
    salt: str,
    to: Entity,
    audience: int,
    key: str,
    things: Things,
    who: frozenset[int],
    party: Mapping[int, int],
    sharing: Sharing,
    now: int,
    expires: int,
    epoch: int,
) -> Item:
    rows = [one for thing in things for one in world.sources[thing] if party.get(one.owner, one.owner) in who]
    unique = {one.source: one.owner for one in rows}
    sources = tuple((source, owner, 1 / len(unique)) for source, owner in sorted(unique.items()))
    text = " + ".join(world.names[thing].id for thing in things)
    sure = rules.support(len(who), world.principals, minimum=sharing.min_contributors, delta=sharing.delta)
    return Item(
        id=item_id(salt, str(to), FacetKind.FACET, key, f"{text} {sure} {epoch}", unique),
        owner=audience,
        kind=FacetKind.FACET,
        key=key,
        text=text,
        confidence=sure,
        level=Level.FACETS,
        links=things,
        sources=sources,
        made_by=MADE_BY,
        epoch=epoch,
        at=now,
        expires=expires,
    )


def _key(world: _World, things: Things, salt: str) -> str:
    """The same for the same things; a trace of what was erased keeps its key, so there is no name in it."""
    named = json.dumps(sorted(str(world.names[thing]) for thing in things))
    return "export:" + hashlib.blake2b(named.encode(), key=salt.encode()[:64], digest_size=16).hexdigest()


def _series(salt: str, to: Entity) -> str:
    """Says nothing of the tenant or the audience, and is the same for all bundles of both."""
    return hashlib.blake2b(
        str(to).encode(), key=salt.encode()[:64], person=b"bundle-series", digest_size=16
    ).hexdigest()


def _revoke(tools: Tools, tenant: str, id_: str) -> Revocations:
    now = tools.now()
    with tools.store.database.write() as connection:
        audience = bundles.revoke(connection, tenant, id_, now)
        _note(connection, tenant, audience, "revoke", id_, now)
        of = bundles.listed(connection, tenant, audience)
        called = names.names_of(connection, tenant, [audience])
        if audience not in called:
            raise StaleLeaseError(id_, "its audience was forgotten meanwhile")
        value = Revocations(
            series=_series(names.salt(connection, tenant), Entity.parse(called[audience])),
            issued=moment(now),
            revoked=tuple(old.id for old in of if old.revoked is not None),
        )
        return rules.sign(value, tools.keys.key())


def _listed(tools: Tools, tenant: str) -> list[Issued]:
    now = tools.now()
    with tools.store.database.read() as connection:
        rows = bundles.listed(connection, tenant)
        called = names.names_of(connection, tenant, [row.audience for row in rows])
        grants = policy.rows(connection, tenant, now)
        out: list[Issued] = []
        for row in rows:
            if row.audience not in called:
                continue
            consent = rules.consenting(grants, called[row.audience], now)
            why = None if row.revoked is not None or row.expires <= now else _why(connection, tenant, row, consent)
            ended = "expired" if row.expires <= now else "issued"
            out.append(
                Issued(
                    id=row.id,
                    to=Entity.parse(called[row.audience]),
                    at=moment(row.sequence),
                    expires=moment(row.expires),
                    facets=len(row.items),
                    state="revoked" if row.revoked is not None else ended,
                    why=why,
                )
            )
    return out


def _why(connection: Connection, tenant: str, row: IssuedRow, consent: frozenset[int]) -> str | None:
    """What an owner did since that speaks for revoking: forgot something, or took consent back."""
    items = list(row.items)
    there = lineage.heads(connection, tenant, items)
    erased = {id_ for id_ in items if id_ not in there or there[id_].superseded in (derived.ERASED, derived.FORGOTTEN)}
    if erased:
        return f"{len(erased)} of its facets rest on something that was forgotten since"
    behind = {one for of in lineage.principals(connection, tenant, items).values() for one in of}
    if behind - consent:
        return f"{len(behind - consent)} of its contributors let it go no longer"
    return None


def _note(connection: Connection, tenant: str, audience: int, action: str, subject: str, now: int) -> None:
    row = {"tenant": tenant, "id": next_id(), "at": now, "principal": audience}
    connection.execute(insert(audit), [{**row, "action": action, "subject": subject}])
