"""Agent A fixed a Go modules conflict on Monday; on Thursday agent B profits from it."""

from __future__ import annotations

from _offline import FOLDER, offline_memory
from collab_layer_mem0 import collaborative

from collab_layer import CollabLayer

PROBLEM = "go build: ambiguous import, package genproto found in multiple modules"


def main() -> None:
    with CollabLayer.open(str(FOLDER / "collab.db")) as layer:
        memory = collaborative(offline_memory(), layer=layer, timeout_s=5)
        memory.add(
            "go build says ambiguous import, genproto found in multiple modules: "
            "go get google.golang.org/genproto@latest, then go mod tidy, fixed it.",
            agent_id="coder-a",
            infer=False,
        )
        memory.add("This repository uses Go 1.24", agent_id="coder-b", infer=False)

        layer.drain()
        before = memory.search(PROBLEM, filters={"agent_id": "coder-b"}, threshold=0.0)["results"]
        print("before:", [item["memory"] for item in before])

        grant = layer.grant("agent:coder-a", to="agent:coder-b", level="records")
        layer.drain()
        after = memory.search(PROBLEM, filters={"agent_id": "coder-b"}, threshold=0.0)["results"]
        print("after: ", [item["memory"] for item in after])
        assert not any("genproto@latest" in item["memory"] for item in before)
        assert any("genproto@latest" in item["memory"] for item in after)

        layer.revoke(grant.id)
        again = memory.search(PROBLEM, filters={"agent_id": "coder-b"}, threshold=0.0)["results"]
        assert again == before
        print("revoked: as before")
        memory.close()


if __name__ == "__main__":
    main()
