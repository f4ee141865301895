"""Who may use what, and who is who: grants, notices, aliases, policies, tokens.

In:   an owner's word, or the operator's.
Out:  what holds from the next read on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from collab_layer.errors import InputError
from collab_layer.flows import aliases, policies, share, tokens
from collab_layer.flows import publish as publish_flow
from collab_layer.types.access import NewToken, Token
from collab_layer.types.alias import Alias
from collab_layer.types.entity import Entity, MemoryRef, checked_text
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.notice import Notice
from collab_layer.types.scope import Grant, LevelName, Policy
from collab_layer.types.time import utc
from collab_layer.verbs.base import EntityLike, View, checked, known_id


class Consenting(View):
    """Who may use what."""

    async def grant(
        self,
        owner: EntityLike,
        to: EntityLike,
        level: LevelName = "facets",
        purpose: str | None = None,
        until: datetime | None = None,
    ) -> Grant:
        """Let an audience use the owner's memories.

        Args:
            owner: Whose memories.
            to: An entity, a group such as `team:support`, a kind such as `kind:agent`, or `tenant`.
            level: `facets` (distilled, in a crowd) or `records` (verbatim evidence).
            purpose: Only for readers that act for it.
            until: Ends by itself.
        """
        end = None if until is None else utc(until)
        given = await share.grant(
            self._alive(), self._scope, Entity.parse(owner), str(to), level, purpose=checked_text(purpose), until=end
        )
        self._core.nudge()
        return given

    async def grants(self, owner: EntityLike | None = None) -> list[Grant]:
        """Grants and opt-outs in force, newest first.

        Args:
            owner: Whose. None: everybody's and the tenant's own, for the operator; a principal sees its own.

        Raises:
            NotPermittedError: A principal asks for somebody else's.
        """
        of = None if owner is None else Entity.parse(owner)
        return await share.listed(self._alive(), self._scope, of)

    async def opt_out(self, owner: EntityLike, audience: EntityLike = "tenant") -> Grant:
        """Deny an audience what the tenant's policy would give it; `revoke` takes it back."""
        return await share.grant(
            self._alive(),
            self._scope,
            Entity.parse(owner),
            str(audience),
            "facets",
            purpose=None,
            until=None,
            denied=True,
        )

    async def publish(
        self,
        owner: EntityLike,
        text: str,
        to: EntityLike,
        sources: Sequence[str | MemoryRef] = (),
        purpose: str | None = None,
        until: datetime | None = None,
    ) -> Notice:
        """Let an audience know something in words that the owner chose; what it rests on stays closed.

        It is a grant of its own: ending other grants of the owner leaves it. It ends by `revoke`, `forget`,
        at `until`, and when a source or its owner is forgotten.

        Args:
            owner: Whose notice it is; readers are told.
            text: 1 to 2,000 characters. What reads like an order to a model is refused.
            to: As for `grant`.
            sources: Ids of the owner's own interactions or records that it rests on, or `MemoryRef`s.
            purpose: Only for readers that act for it.
            until: Ends by itself.
        """
        end = None if until is None else utc(until)
        return await publish_flow.publish(
            self._alive(),
            self._scope,
            Entity.parse(owner),
            text,
            str(to),
            sources,
            purpose=checked_text(purpose),
            until=end,
        )

    async def revoke(self, grant_id: str) -> ErasureReceipt:
        """End a grant at once, or a notice: its words go with it.

        Returns:
            A receipt: whose words left the index, which quotes were erased, and what is taken back
            from stores that it was delivered to.
        """
        receipt = await publish_flow.revoke(self._alive(), self._scope, known_id(grant_id))
        self._core.nudge()
        return receipt

    async def alias(self, entity: EntityLike, principal: EntityLike) -> Alias:
        """Say that two entities are one principal: they are counted once, wherever principals are counted.

        That is for `min_contributors`, for `delta` and for corroboration; of several aliases one is a
        neighbour. Grants stay with each entity, and nothing is widened. Aliases of an alias follow it.

        Args:
            entity: What the principal also acts as.
            principal: Who is counted for both.

        Raises:
            NotPermittedError: A principal asks; who is who is the operator's to say.
        """
        tools = self._operator("say who is who in")
        return await aliases.tie(tools, self.tenant, Entity.parse(entity), Entity.parse(principal))

    async def unalias(self, entity: EntityLike) -> None:
        """Count an alias by itself again.

        Raises:
            UnknownIdError: It is no alias.
        """
        await aliases.untie(self._operator("say who is who in"), self.tenant, Entity.parse(entity))

    async def aliases(self) -> list[Alias]:
        """Every alias of this tenant with the principal that is counted for it."""
        return await aliases.listed(self._operator("list the aliases of"), self.tenant)

    async def set_policy(
        self,
        team: EntityLike | None = None,
        *,
        min_contributors: int | None = None,
        level: LevelName | None = None,
        purposes: Sequence[str] | None = None,
        longest_days: float | None = None,
    ) -> Policy:
        """Limit what a team, or the whole tenant, may share; in place of its policy before, from the next read on.

        Grants made before hold on as far as it allows them. A team's policy can be stricter than the
        tenant's, never looser.

        Args:
            team: Such as `team:support`; the tenant if left out.
            min_contributors: Distinct owners behind a facet, at least what the tenant was opened with.
            level: The most that a grant may give.
            purposes: A grant must name one of these.
            longest_days: How long a grant may hold.

        Returns:
            What holds for it from now on, the tenant's part included.

        Raises:
            PolicyError: It would be looser than the tenant's.
            NotPermittedError: A principal asks; policies are the operator's.
        """
        tools = self._operator("set the policy of")
        given = None if purposes is None or isinstance(purposes, str) else tuple(purposes)
        if isinstance(purposes, str):
            raise InputError("pass `purposes` as a list of words")
        wanted = checked(
            Policy,
            team=None if team is None else Entity.parse(team),
            min_contributors=min_contributors,
            level=level,
            purposes=given,
            longest_days=longest_days,
        )
        changed = await policies.set_policy(tools, self.tenant, wanted)
        self._core.nudge()
        return changed

    async def policies(self) -> list[Policy]:
        """The policies of the tenant and its teams as they were set; the tenant's first."""
        return await policies.listed(self._operator("list the policies of"), self.tenant)

    async def issue_token(
        self, principal: EntityLike, purpose: str | None = None, until: datetime | None = None
    ) -> NewToken:
        """Let the bearer of a new token act for one entity, by `open_with` or through `collab serve`.

        Args:
            principal: Whom the bearer acts for; it becomes known by this.
            purpose: What the bearer acts for.
            until: Ends by itself; in 90 days if None.

        Returns:
            The token with its `text`, which is shown this once: only a digest is kept.

        Raises:
            NotPermittedError: A principal asks; tokens are the operator's.
        """
        tools = self._operator("issue a token in")
        end = None if until is None else utc(until)
        return await tokens.issue(tools, self.tenant, Entity.parse(principal), checked_text(purpose), end)

    async def tokens(self) -> list[Token]:
        """Every token of this tenant, newest first, ended ones too; never a secret."""
        return await tokens.listed(self._operator("list the tokens of"), self.tenant)

    async def revoke_token(self, id: str) -> None:
        """End a token; its very next use is refused, in every process.

        Raises:
            UnknownIdError: No such token is in force.
        """
        await tokens.revoke(self._operator("revoke a token of"), self.tenant, known_id(id))


__all__ = ["Consenting"]
