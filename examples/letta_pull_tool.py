"""Letta agent B asks, through the pull tool and a running `collab serve`, what others know of its problem."""

from __future__ import annotations

from _letta import FOLDER, new_agent, run_tool, server, service
from collab_layer_letta import attach, detach

from collab_layer import CollabLayer

SOLVED = "go build: ambiguous import, genproto found in two modules. go get google.golang.org/genproto@latest fixed it."


def main() -> None:
    database = str(FOLDER / "collab.db")
    with server() as client, CollabLayer.open(database) as layer, service(database) as url:
        a, b = new_agent(client, "coder-a"), new_agent(client, "coder-b")
        client.agents.passages.create(a, text=SOLVED, tags=["topic:go-modules"])
        layer.grant("agent:coder-a", to="agent:coder-b", level="records")
        attach(client, a, entity="agent:coder-a", layer=layer)
        attach(client, b, entity="agent:coder-b", layer=layer, url=url)

        answer = run_tool(client, b, "go build fails with an ambiguous import of genproto")
        print(answer)
        assert "genproto@latest" in answer

        for agent in (a, b):
            detach(client, agent, layer=layer)
            client.agents.delete(agent)


if __name__ == "__main__":
    main()
