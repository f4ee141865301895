"""Owners who share no name are found by what their memories are like, and teammates by their team."""

import numpy as np

from collab_layer.config import Settings
from collab_layer.sync import CollabLayer

SUBJECT = {"gardening": 0, "orchids": 0, "roses": 0, "kernels": 1, "compilers": 1, "linkers": 1}


class _Meaning:
    """Knows which words mean the same though they share no letter."""

    id, dim = "meaning", 8

    async def embed(self, texts):
        out = np.zeros((len(texts), self.dim), np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                if word in SUBJECT:
                    out[row, SUBJECT[word]] += 1
        norm = np.linalg.norm(out, axis=1, keepdims=True)
        return np.divide(out, norm, out=np.zeros_like(out), where=norm > 0)


def test_peers_are_found_by_vectors_where_nothing_is_shared_by_name(database_url):
    said = {"user:a": "orchids", "user:b": "roses", "user:c": "compilers", "user:d": "linkers", "user:e": "kernels"}
    with CollabLayer.open(database_url, embedder=_Meaning(), settings=Settings(worker=False)) as layer:
        for who, word in said.items():
            layer.observe(who, text=word)
            layer.grant(who, "tenant", "records")
        layer.drain()
        found = layer.neighbors("user:a")
        assert [str(one.entity) for one in found] == ["user:b"]
        assert found[0].contributions["peer"] > 0


def test_teammates_are_neighbours_before_they_share_anything(layer):
    for who in ("agent:a", "agent:b"):
        layer.observe(who, "team:support", verb="joined")
    layer.grant("agent:a", "team:support", "records")
    layer.drain()
    assert [str(one.entity) for one in layer.neighbors("agent:b")] == ["agent:a"]
