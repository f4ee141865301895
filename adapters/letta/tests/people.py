"""Agents as their users have them: made, filled and changed through Letta's own client."""

import threading
from contextlib import suppress

from collab_layer_letta.mapping import passage_id, split_passage, tag_of
from letta_client import NotFoundError

MODEL, EMBEDDING = "openai-proxy/gpt-4o-mini", "openai/text-embedding-3-small"


class People:
    """One agent per entity, made when first needed; all are deleted by `close`."""

    def __init__(self, client):
        self.client, self.agents, self.blocks, self.identities = client, {}, [], {}
        self._lock = threading.Lock()

    def agent(self, entity, **more):
        """The id of the agent of an entity."""
        with self._lock:
            if str(entity) not in self.agents:
                self.agents[str(entity)] = self.new(tags=[tag_of(entity)], **more)
        return self.agents[str(entity)]

    def new(self, **more):
        """A new agent without blocks and tools."""
        fields = {"name": "collab-test", "memory_blocks": [], "include_base_tools": False, **more}
        made = self.client.agents.create(model=MODEL, embedding=EMBEDDING, **fields)
        self.agents.setdefault(made.id, made.id)
        return made.id

    def identity(self, key, kind="user"):
        """The identity with a key, made when first needed; its id."""
        if key not in self.identities:
            body = {"identifier_key": key, "name": key, "identity_type": kind}
            self.identities[key] = self.client.post("/v1/identities/", body=body, cast_to=object)["id"]
        return self.identities[key]

    def introduce(self, agent, key):
        """Let somebody speak with an agent."""
        self.client.patch(f"/v1/agents/{agent}/identities/attach/{self.identity(key)}", cast_to=type(None))

    def say(self, agent, text, key=None, **more):
        """Send a message, as somebody if a key is given."""
        sender = {} if key is None else {"sender_id": self.identity(key)}
        body = {"messages": [{"role": "user", "content": text, **sender, **more}]}
        self.client.post(f"/v1/agents/{agent}/messages", body=body, cast_to=object)

    def archive(self, entity, text, **more):
        """Let the agent of an entity archive a text; the native id."""
        row = self.client.agents.passages.create(self.agent(entity), text=text, **more)[0]
        return passage_id(row.archive_id, row.id)

    def unarchive(self, native):
        archive, passage = split_passage(native)
        self.client.archives.passages.delete(passage, archive_id=archive)

    def block(self, agents, text, label=None):
        """Give agents a block in common; its id."""
        made = self.client.blocks.create(label=label or f"note_{len(self.blocks)}", value=text)
        self.blocks.append(made.id)
        for agent in agents:
            self.client.agents.blocks.attach(made.id, agent_id=agent)
        return made.id

    def prompt(self, agent):
        """The compiled prompt as Letta keeps it."""
        message = self.client.agents.retrieve(agent).message_ids[0]
        rows = self.client.get(f"/v1/messages/{message}", cast_to=object)
        return "\n".join(row["content"] for row in rows if row["message_type"] == "system_message")

    def signal(self, agent):
        """The signal block of an agent, or None."""
        rows = self.client.get(f"/v1/agents/{agent}", cast_to=object, options={"params": {"include": ["agent.blocks"]}})
        return next((row for row in rows["blocks"] if row["label"] == "collab_signal"), None)

    def close(self):
        """Leave nothing behind."""
        for agent in set(self.agents.values()):
            archives = []
            with suppress(NotFoundError):
                archives = [one.id for one in self.client.archives.list(agent_id=agent)]
                self.client.agents.delete(agent)
            for archive in archives:  # it outlives its agent, with all that is in it
                self._gone(self.client.archives.delete, archive)
        for block in self.blocks:
            self._gone(self.client.blocks.delete, block)
        for identity in self.identities.values():
            with suppress(NotFoundError):
                self.client.delete(f"/v1/identities/{identity}", cast_to=type(None))
        for label in ("collab_item", "collab_signal"):
            for row in self.client.blocks.list(label=label, limit=100):
                self._gone(self.client.blocks.delete, row.id)
        for row in self.client.tools.list(name="collaborative_memory"):
            self._gone(self.client.tools.delete, row.id)

    @staticmethod
    def _gone(delete, id_):
        with suppress(NotFoundError):
            delete(id_)
