"""A new support agent gets what the team has in common, and nobody's wording."""

from __future__ import annotations

from _offline import FOLDER, offline_memory
from collab_layer_mem0 import collaborative

from collab_layer import CollabLayer

TICKETS = {
    "anna": "Login loops after the SAML signing certificate was rotated in Okta. Fix: uploaded the new certificate.",
    "ben": "Okta rotated its SAML signing certificate and every login loops. Fix: imported the new certificate.",
    "chloe": "SAML response refused after certificate rotation in Entra. Fix: replaced the signing certificate.",
    "dmitri": "SAML: вход зацикливается после смены сертификата. Исправление: загрузили новый сертификат.",
    "elif": "Endless redirect, the SAML certificate had expired. Fix: uploaded the new signing certificate.",
}


def main() -> None:
    with CollabLayer.open(str(FOLDER / "collab.db")) as layer:
        memory = collaborative(offline_memory(), layer=layer, timeout_s=5)
        for agent, ticket in TICKETS.items():
            memory.add(ticket, agent_id=agent, infer=False, metadata={"collab_links": "topic:saml-certificate"})
            layer.grant(f"agent:{agent}", to="team:support", level="facets")
        layer.observe("agent:lena", "team:support", verb="joined")
        layer.drain()

        known = layer.context("agent:lena", query="SAML login loops after a certificate change", budget_tokens=250)
        print(known)
        assert known.facets
        assert known.facets[0].contributors >= 3
        assert all(item.quote is None for facet in known.facets for item in facet.evidence)
        memory.close()


if __name__ == "__main__":
    main()
