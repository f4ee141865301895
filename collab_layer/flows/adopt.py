"""A file of another organisation to candidates of their own kind, or to one typed error.

load:   the file, no further than any bundle is long; what is known of its issuer;
check:  size, form, signature, trust, time, order, in this turn, before anything is written;
save:   all of it in one transaction.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import Connection, insert

from collab_layer.errors import BundleFormatError, InputError
from collab_layer.flows.tools import Tools
from collab_layer.governance import bundle as rules
from collab_layer.graph import bundles, foreign, names
from collab_layer.graph.foreign import Taken
from collab_layer.graph.ids import next_id
from collab_layer.graph.tables import audit
from collab_layer.stages.quarantine import quarantined
from collab_layer.types.bundle import MAX_BYTES, Bundle, BundleFacet, Imported, Revocations
from collab_layer.types.time import micros


async def adopt(
    tools: Tools, tenant: str, source: Path | bytes, trust: Mapping[str, float], issuers: Mapping[str, float]
) -> Imported:
    """Take a bundle, or a list of revocations.

    Raises:
        BundleError: It cannot be taken; nothing of it was.
        InputError: The file cannot be read, or a trust is out of range.
    """
    return await tools.in_thread(_adopt, tools, tenant, source, trust, issuers)


def _adopt(
    tools: Tools, tenant: str, source: Path | bytes, trust: Mapping[str, float], issuers: Mapping[str, float]
) -> Imported:
    for given in trust.values():
        rules.checked_trust(given)
    value = rules.read(source if isinstance(source, bytes) else _bytes(source))
    key = value.key or ""
    if isinstance(value, Revocations):
        return _revoked(tools, tenant, value, key, {**issuers, **trust})
    sure = rules.trust_in(key, trust, issuers)
    now = tools.now()
    rules.check_time(value, now)
    with tools.store.database.write() as connection:
        names.ensure(connection, tenant)
        names.lock(connection, tenant)
        if any(value.id == own.id for own in bundles.listed(connection, tenant)):
            raise BundleFormatError("this tenant issued it itself, and would take its own word for another's")
        dropped = foreign.revoke(connection, tenant, key, value.series, value.revoked, now) if value.revoked else 0
        known = foreign.series(connection, tenant, key, value.series)
        if not rules.check_order(value, known.revoked, known.newest):
            return Imported(issuer=key, bundle=value.id, trust=sure, expires=value.expires)
        salt = names.salt(connection, tenant)
        facets = [_taken(salt, value, one, sure, now) for one in value.facets if _harmless(one)]
        head = Taken("", value.id, (), 0.0, sure, value.min_contributors, key, now, micros(value.expires))
        foreign.prune(connection, tenant, now)
        gone, forgotten = foreign.take(connection, tenant, value.series, value.id, value.sequence, facets, head)
        _note(connection, tenant, "import", value.id, now)
    taken = len(facets) - forgotten
    return Imported(
        issuer=key,
        bundle=value.id,
        trust=sure,
        taken=taken,
        left_out=len(value.facets) - taken,
        dropped=dropped + gone,
        expires=value.expires,
    )


def _bytes(path: Path) -> bytes:
    """A file, no further than one byte more than a bundle may have."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no path"
        raise InputError(f"the file `{path.name}` cannot be read: {why}") from error


def _revoked(tools: Tools, tenant: str, value: Revocations, key: str, given: Mapping[str, float]) -> Imported:
    now = tools.now()
    with tools.store.database.write() as connection:
        names.ensure(connection, tenant)
        if not foreign.knows(connection, tenant, key):
            rules.trust_in(key, given, {})
        dropped = foreign.revoke(connection, tenant, key, value.series, value.revoked, now)
        _note(connection, tenant, "import", "revocations", now)
    return Imported(issuer=key, dropped=dropped)


def _harmless(facet: BundleFacet) -> bool:
    return all(quarantined(said) is None for thing in facet.things for said in (thing.id, thing.id.replace("-", " ")))


def _taken(salt: str, of: Bundle, facet: BundleFacet, trust: float, now: int) -> Taken:
    """The same things of the same series have the same id, so that what was forgotten is known again."""
    things = tuple(str(thing) for thing in facet.things)
    whole = json.dumps([of.key, of.series, sorted(things)])
    id_ = "f" + hashlib.blake2b(whole.encode(), key=salt.encode()[:64], digest_size=16).hexdigest()
    said = (facet.support, trust, of.min_contributors, of.key or "")
    return Taken(id_, of.id, things, *said, now, micros(of.expires))


def _note(connection: Connection, tenant: str, action: str, subject: str, now: int) -> None:
    row = {"tenant": tenant, "id": next_id(), "at": now, "principal": None}
    connection.execute(insert(audit), [{**row, "action": action, "subject": subject}])
