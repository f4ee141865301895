"""Letta agent A archives how it fixed a Go modules conflict; it stands in agent B's next prompt."""

from __future__ import annotations

from _letta import FOLDER, compiled_prompt, new_agent, server
from collab_layer_letta import attach, detach

from collab_layer import CollabLayer

SOLVED = "go build: ambiguous import, genproto found in two modules. go get google.golang.org/genproto@latest fixed it."
OWN = "go build fails in the billing service: ambiguous import of genproto. Not solved yet."


def main() -> None:
    with server() as client, CollabLayer.open(str(FOLDER / "collab.db")) as layer:
        a, b = new_agent(client, "coder-a"), new_agent(client, "coder-b")
        client.agents.passages.create(b, text=OWN, tags=["topic:go-modules"])
        attach(client, a, entity="agent:coder-a", layer=layer)
        keeper = attach(client, b, entity="agent:coder-b", layer=layer).keeper
        layer.grant("agent:coder-a", to="agent:coder-b", level="records")
        assert keeper is not None
        before = compiled_prompt(client, b)

        client.agents.passages.create(a, text=SOLVED, tags=["topic:go-modules"])
        keeper.sync()  # a round comes every 30 seconds by itself

        after = compiled_prompt(client, b)
        print(after[after.index("<collab_signal>") : after.index("</collab_signal>")])
        assert "genproto@latest" not in before
        assert "genproto@latest" in after

        for agent in (a, b):
            detach(client, agent, layer=layer)
        assert "genproto@latest" not in compiled_prompt(client, b)
        for agent in (a, b):
            client.agents.delete(agent)


if __name__ == "__main__":
    main()
