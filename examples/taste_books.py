"""Which book next? Readers who like the same books say, without being named."""

from __future__ import annotations

import tempfile

from collab_layer import CollabLayer, Interaction, Sharing

LIKED = {
    "ada": ["dune", "hyperion", "solaris", "left-hand"],
    "bo": ["dune", "hyperion", "three-body"],
    "cem": ["solaris", "roadside-picnic", "hyperion"],
    "dana": ["left-hand", "dispossessed", "solaris", "hyperion"],
    "ines": ["name-of-the-rose", "gaudy-night", "moonstone"],
    "jon": ["gaudy-night", "nine-tailors", "moonstone"],
    "mira": ["dune", "solaris"],
}


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        CollabLayer.open(f"{folder}/books.db", sharing=Sharing.within_tenant("facets")) as layer,
    ):
        layer.observe(
            [
                Interaction(actor=f"user:{reader}", target=f"item:{book}", verb="liked")
                for reader, books in LIKED.items()
                for book in books
            ]
        )
        layer.drain()
        for neighbor in layer.neighbors("user:mira", k=3):
            print(neighbor.entity, round(neighbor.score, 3), [str(item) for item in neighbor.shared])
        ranking = layer.rank("user:mira", ["item:gaudy-night", "item:hyperion", "item:moonstone"])
        for item in ranking.items:
            print(item.entity, item.rationale)
        assert str(ranking.entities[0]) == "item:hyperion"


if __name__ == "__main__":
    main()
