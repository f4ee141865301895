"""`collab_layer.testing` costs nothing until it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import collab_layer.testing


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_the_store_and_the_clock_need_no_test_tool():
    assert "pytest" not in loaded_by("from collab_layer.testing import FixedClock, InMemoryBackend, PostgresServer")
    assert "pytest" in loaded_by("from collab_layer.testing import BackendContract")


@pytest.mark.parametrize("name", collab_layer.testing.__all__)
def test_every_name_it_exports_is_there(name):
    assert getattr(collab_layer.testing, name).__name__ == name
    assert name in dir(collab_layer.testing)


def test_a_wrong_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Nothing"):
        collab_layer.testing.Nothing  # noqa: B018  the look-up is the test
