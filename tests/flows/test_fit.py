"""Weights are learned from what owners chose earlier, each read as of the moment before."""

import pytest

from collab_layer.errors import NotPermittedError
from collab_layer.types.interaction import Interaction


def _two_tastes(layer, clock, people=40):
    """Two groups; each person's newest choice is what its own group holds."""
    batch = []
    for person in range(people):
        group = person % 2
        for step in range(8):
            thing = (person + 3 * step) % 12
            clock.advance(hours=1)
            batch.append(Interaction(actor=f"user:{person}", target=f"item:{group}-{thing}", verb="liked", at=clock()))
    layer.observe(batch)
    layer.drain()


def test_evidence_counts_where_neighbours_foretell_choices(layer, clock):
    _two_tastes(layer, clock)
    layer.grant("user:0", "tenant", "records")
    for person in range(1, 40):
        layer.grant(f"user:{person}", "tenant", "records")
    layer.drain()
    weights = layer.refit()
    assert all(value >= 0 for value in weights.values())
    assert weights["evidence"] + weights["log_lift"] > 0.2
    assert layer.rank("user:0", ["item:0-1", "item:1-1"]).weights == weights


def test_without_grants_there_is_nothing_to_learn_from(layer, clock):
    _two_tastes(layer, clock)
    before = layer.rank("user:0", ["item:0-1"]).weights
    assert layer.refit() == before


def test_too_few_choices_keep_the_defaults(layer, clock):
    _two_tastes(layer, clock, people=6)
    before = layer.rank("user:0", ["item:0-1"]).weights
    assert layer.refit() == before


def test_only_the_operator_fits(layer):
    with pytest.raises(NotPermittedError):
        layer.as_("user:0").refit()
