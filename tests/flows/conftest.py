from collections.abc import Iterator

import pytest

from collab_layer.config import Settings
from collab_layer.sync import CollabLayer
from collab_layer.testing.clock import FixedClock


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def layer(database_url, clock) -> Iterator[CollabLayer]:
    settings = Settings(worker=False, holdout=0)  # else one ranking in twenty is made without neighbours
    with CollabLayer.open(database_url, tenant="acme", settings=settings, clock=clock) as layer:
        yield layer


def tickets(layer, count=9, kind="agent"):
    """Agents that met the same SSO loop, each in its own words."""
    for n in range(count):
        layer.observe(
            f"{kind}:s{n}",
            text=f"Ticket {n}: the SSO login loop came back after the Okta certificate was renewed, canary{n}word",
            links=["topic:sso-login", "topic:okta"],
            outcome=f"cleared the session cookie for client canary{n}did",
        )
    layer.drain()
