"""What the tests of model stages share: a layer with scripted models, and stories to tell it."""

from __future__ import annotations

import re
from contextlib import contextmanager

from collab_layer.config import Settings
from collab_layer.sync import CollabLayer
from collab_layer.testing import ScriptedModel
from collab_layer.types.scope import Sharing

LINE = re.compile(r"^([mec]\d+)\b(.*)$", re.MULTILINE)


@contextmanager
def opened(url, clock, *, memory=None, reasoning=None, level="records", caps=None, **settings):
    """A layer whose tenant shares with everybody, and its scripted models."""
    budget = {} if caps is None else {"memory": caps, "reasoning": caps}
    used = Settings(worker=False, trigger="nightly", **budget, **settings)
    with CollabLayer.open(
        url,
        tenant="acme",
        sharing=Sharing.within_tenant(level),
        memory_model=memory,
        reasoning_model=reasoning,
        settings=used,
        clock=clock,
    ) as layer:
        yield layer


def lines(prompt) -> dict[str, str]:
    """Alias to the rest of its line."""
    return dict(LINE.findall(prompt.data))


def shared_taste(layer, users=5):
    """Five users that read the same books, each with a note of its own."""
    for n in range(users):
        for book in ("dune", "neuromancer", f"own-{n}"):
            layer.observe(f"user:u{n}", f"item:{book}", "read")
        layer.observe(
            f"user:u{n}", text=f"I like slow desert worlds with politics, says reader {n}", links=["item:dune"]
        )
    layer.drain()


def wording(text="Slow desert worlds with politics", support=3):
    """A memory model that cites the first lines it is shown."""

    def reply(prompt):
        ids = [alias for alias in lines(prompt) if alias.startswith("m")][:support]
        return {"facets": [{"text": text, "support": ids}]}

    return ScriptedModel(reply, name="scripted-memory")


def judge(order=None):
    """A reasoning model that scores the candidates by place, the last best, each citing the first facet."""

    def reply(prompt):
        known = lines(prompt)
        ids = [alias for alias in known if alias.startswith("c")]
        facets = [alias for alias in known if alias.startswith("e")][:1]
        said = {"facets": facets, "why": "slow desert worlds"}
        return {"scores": [{"id": id_, **said, "score": 10 * at} for at, id_ in enumerate(ids)]}

    return ScriptedModel(order or reply, name="scripted-reasoning")
