"""Which curation rules each tenant uses, compiled.

In:   a snapshot of a tenant.
Out:  its `Scorer`: the rules it chose, else those that the deployment is set to.
Never: an error for rules that no longer load. The deployment's own stand in, and `health` says so.

A tenant's choice is read again only when its policy version moved, which the snapshot knows.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from collab_layer.errors import InvalidRuleError
from collab_layer.graph import rule_sets
from collab_layer.graph.index import TenantIndex
from collab_layer.graph.rule_sets import Choice
from collab_layer.graph.store import policy_version
from collab_layer.plugins.specs import FeatureSpec
from collab_layer.stages.rules import Scorer, load

log = logging.getLogger("collab_layer")


@dataclass(frozen=True, slots=True)
class InUse:
    """The rules of one tenant.

    Attributes:
        scorer: Compiled.
        choice: What the tenant chose; None for the deployment's own.
        why: Why the deployment's own stand in for what was chosen; None if they do not.
    """

    scorer: Scorer
    choice: Choice | None = None
    why: str | None = None


class RuleBook:
    """The rules of every tenant; safe from any thread."""

    def __init__(
        self, own: Scorer, presets: Mapping[str, Mapping[str, Any]], features: Sequence[FeatureSpec] = ()
    ) -> None:
        """Keep what a deployment has.

        Args:
            own: The rules it is set to.
            presets: Rule trees by name.
            features: Allowed in rules beside the built-in ones.
        """
        self.own, self.presets, self.features = own, presets, tuple(features)
        self._kept: dict[str, tuple[int, InUse]] = {}
        self._lock = threading.Lock()

    def scorer(self, connection: Connection, index: TenantIndex) -> Scorer:
        """The rules of the index's tenant, as of the snapshot it was refreshed in."""
        tenant = index.tenant
        with self._lock:
            kept = self._kept.get(tenant)
        if kept is None or kept[0] != index.policy:
            # Kept under the version of this very snapshot; the index may have seen a newer one.
            kept = policy_version(connection, tenant), self.in_use(connection, tenant)
            with self._lock:
                self._kept[tenant] = kept
        return kept[1].scorer

    def in_use(self, connection: Connection, tenant: str) -> InUse:
        """What the tenant chose, read and compiled now."""
        choice = rule_sets.chosen(connection, tenant)
        if choice is None:
            return InUse(self.own)
        try:
            return InUse(self._compiled(choice), choice)
        except InvalidRuleError as error:
            what = f"preset `{choice.preset}`" if choice.hash is None else f"rule set {choice.hash[:12]}"
            why = f"the {what} cannot be loaded ({error}); the deployment's own rules stand in"
            log.warning("tenant %s: %s", tenant, why)
            return InUse(self.own, choice, why)

    def compiled(self, source: str | bytes | Mapping[str, Any]) -> Scorer:
        """A tree with all features of this deployment.

        Raises:
            InvalidRuleError: With the path of the offending node.
        """
        return load(source, self.features)

    def _compiled(self, choice: Choice) -> Scorer:
        tree = choice.tree if choice.preset is None else self.presets.get(choice.preset)
        if tree is None:
            raise InvalidRuleError("rules", "it is not there any more")
        return self.compiled(tree)


__all__ = ["InUse", "RuleBook"]
