"""What is taken back, held back or carried over: erasures and receipts, the quarantine, bundles.

In:   what is to be forgotten, released, exported or imported.
Out:  signed receipts and bundles.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from collab_layer.errors import InputError
from collab_layer.flows import adopt, attest, erase, export, review, share
from collab_layer.types.bundle import Bundle, Imported, Issued, Revocations
from collab_layer.types.entity import Entity, MemoryRef
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.review import Blocked, Quarantined
from collab_layer.verbs.base import EntityLike, View, known_id


class Governing(View):
    """What is taken back, held back or carried over."""

    async def forget(self, what: EntityLike | MemoryRef, source: bool = False) -> ErasureReceipt:
        """Erase an entity, a memory, an interaction or a derived item, with all that rests on it.

        Args:
            what: `user:alice`, an id from `observe`, `context` or `explain`, or a `MemoryRef`.
            source: Also in the store where a memory lies, with its history; of an entity all that the
                attached stores have of it. The receipt names stores that promise no erasure; it is
                pending until the others are done, which a worker sees to.
        """
        subject = what if isinstance(what, (Entity, MemoryRef)) else known_id(what)
        receipt = await erase.forget(self._alive(), self._scope, subject, source=source)
        self._core.nudge()
        return receipt

    async def forget_influence(self, entity: EntityLike, block: bool = True) -> ErasureReceipt:
        """Take back all that was derived for others of a principal; its own memories stay.

        Items that rest on it go, through all generations, here and where they were delivered; what
        others said is derived anew without it.

        Args:
            entity: The principal.
            block: Nobody else reads it from now on, whatever it grants, until `unblock`. Without, what it
                still shares counts again at the next read.

        Raises:
            UnknownIdError: It was never seen.
            NotPermittedError: A principal asks about another.
        """
        receipt = await erase.forget_influence(self._alive(), self._scope, Entity.parse(entity), block=block)
        self._core.nudge()
        return receipt

    async def blocked(self) -> list[Blocked]:
        """Principals that nobody else reads since their influence was taken back, the longest first."""
        return await share.blocked(self._operator("list the blocked principals of"), self.tenant)

    async def unblock(self, entity: EntityLike) -> None:
        """Let a principal be read again by whom its grants let; forget first what it should not have said.

        Raises:
            UnknownIdError: It is not blocked.
            NotPermittedError: A principal asks; this is the operator's.
        """
        await share.unblock(self._operator("unblock a principal of"), self.tenant, Entity.parse(entity))
        self._core.nudge()

    async def receipt(self, id: str) -> ErasureReceipt:
        """A receipt as it stands now: signed, and complete once every copy in a store is gone.

        Whoever has the id may read it; names and ids are in it as salted hashes only.

        Raises:
            UnknownIdError: No such receipt in this tenant.
            KeyFileError: It is not signed yet, and the key cannot be used.
        """
        return await attest.receipt(self._alive(), self.tenant, known_id(id))

    async def receipts(self, limit: int = 100) -> list[ErasureReceipt]:
        """Receipts, newest first: all for the operator; for a principal those about itself and its own grants.

        What else a principal forgot is hashed with the receipt's own salt, and read by the receipt's id.

        Args:
            limit: The most to return, 1 to 1,000.
        """
        if not 1 <= limit <= 1_000:
            raise InputError(f"limit must be in [1, 1000], not {limit}")
        return await attest.listed(self._alive(), self._scope, limit)

    async def receipt_key(self) -> str:
        """The public part of the key that signs receipts, as PEM; the key is made if it is not there.

        Raises:
            KeyFileError: The key file cannot be read or made.
        """
        return await attest.public_key(self._operator("ask for the key of"))

    async def quarantined(self) -> list[Quarantined]:
        """Every record that is held back since it reads like an order to a model, newest first."""
        return await review.listed(self._operator("review the quarantine of"), self.tenant)

    async def release(self, id: str) -> None:
        """Show a record that was held back, from the next read on, to whom its owner's grants let.

        It stays released until its text changes. Prompts to a model of ours still leave it out.

        Raises:
            UnknownIdError: No such record is held back.
        """
        await review.release(self._operator("review the quarantine of"), self.tenant, known_id(id))
        self._core.nudge()

    async def drop_quarantined(self, id: str) -> ErasureReceipt:
        """Erase a record that is held back, as `forget` does.

        Raises:
            UnknownIdError: No such record is held back.
        """
        receipt = await review.drop(self._operator("review the quarantine of"), self.tenant, known_id(id))
        self._core.nudge()
        return receipt

    async def export_bundle(self, to: EntityLike = "federation:all", days: int = 30) -> Bundle:
        """Sign a bundle of what several owners have, for somebody outside of the tenant.

        Counted are owners that granted this very audience something (`layer.grant(owner, to)`); what is
        granted to the tenant stays inside. It holds names of things that at least `min_contributors`
        principals have, alone or together, and no words, ids or names of owners.

        Args:
            to: For whom, as owners name it in their grants.
            days: Until it ends by itself, 1 to 365.

        Raises:
            KeyFileError: The key file cannot be used; nothing was stored.
        """
        tools = self._operator("export bundles of")
        if not 1 <= days <= 365:
            raise InputError(f"days must be in [1, 365], not {days}")
        return await export.export(tools, self._scope, Entity.parse(to), days)

    async def revoke_bundle(self, id: str) -> Revocations:
        """Revoke a bundle that this tenant issued.

        Returns:
            The signed list of all that are revoked of its series, for whoever took it.

        Raises:
            UnknownIdError: No such bundle was issued.
        """
        return await export.revoke(self._operator("revoke bundles of"), self.tenant, known_id(id))

    async def bundles(self) -> list[Issued]:
        """Every bundle that this tenant issued, newest first; `why` says what speaks for revoking it."""
        return await export.listed(self._operator("list the bundles of"), self.tenant)

    async def import_bundle(self, source: str | Path | bytes, trust: Mapping[str, float] | None = None) -> Imported:
        """Take a bundle, or a list of revocations, of another organisation: all of it or nothing.

        What it says are candidates: shown last in a context, marked, never surer than anything known
        here, and never an input to curation, ranking or propagation.

        Args:
            source: The file, or its content.
            trust: Issuer's public key to trust in (0, 0.9], for this import; beside the setting `issuers`.

        Raises:
            BundleError: It cannot be taken; the type says why.
        """
        tools = self._operator("import bundles into")
        given = source if isinstance(source, bytes) else Path(source)
        return await adopt.adopt(tools, self.tenant, given, dict(trust or {}), self._core.settings.issuers)


__all__ = ["Governing"]
