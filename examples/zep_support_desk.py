"""Two support agents on Zep: what Ann found out stands in the context of Boris's thread once she allows it.

It needs a Zep project: ZEP_API_KEY, and ZEP_BASE_URL if the project is not at Zep's own address. It makes two
users and deletes them again; no language model is asked for anything.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import uuid
from datetime import UTC, datetime
from pathlib import Path

from collab_layer_zep import Fact, backend_of, collaborative
from zep_cloud import AddMessage, Zep

from collab_layer import CollabLayer, Entity

SOLVED = "SSO sign-in loops after the upgrade: delete the cookie of the old domain, then sign in again"
ASKED = "A customer's SSO sign-in loops since the upgrade"
MARCH = datetime(2026, 3, 1, tzinfo=UTC)


def main() -> None:
    if not os.environ.get("ZEP_API_KEY"):
        print("This example needs a Zep project: set ZEP_API_KEY.")
        return
    zep = Zep(base_url=os.environ.get("ZEP_BASE_URL"))
    mark = uuid.uuid4().hex[:8]  # users of its own, so that nobody else's are touched
    users = [zep.user.create(user_id=f"{name}-{mark}") for name in ("ann", "boris")]
    try:
        desk(zep, *(str(user.user_id) for user in users), str(users[1].uuid_))
    finally:
        for user in users:
            zep.user.delete(str(user.uuid_))


def desk(zep: Zep, ann: str, boris: str, boris_uuid: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="collab-example-"))
    with CollabLayer.open(str(folder / "collab.db")) as layer:
        client = collaborative(zep, layer, ledger=str(folder / "zep.db"), timeout_s=20)  # the same Zep, and more
        store = backend_of(client)

        # Zep extracts facts from Ann's threads by itself. This one is stated directly.
        asyncio.run(store.remember(Entity("user", ann), [Fact(text=SOLVED, valid_at=MARCH)]))
        layer.index(store, owners=[f"user:{ann}"])

        thread = str(client.thread.create(user_uuid=boris_uuid).uuid_)
        client.thread.add_messages(thread, messages=[AddMessage(role="user", content=ASKED)])
        before = client.thread.get_context(thread).context or ""
        assert SOLVED not in before

        layer.grant(f"user:{ann}", to=f"user:{boris}", level="records")
        layer.drain()
        context = client.thread.get_context(thread)
        print(context.context)
        assert context.context is not None
        assert context.context.startswith(before)
        assert SOLVED in context.context

        found = client.graph.search_edges(boris_uuid, query="SSO sign-in loops").items or []
        assert [edge.fact for edge in found if str(edge.uuid_).startswith("collab:")] == [SOLVED]

        for one in layer.explain(context.collab["facets"][0]).sources:
            print(f"\nfrom {one.principal}: {one.quote}")


if __name__ == "__main__":
    main()
