from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("bench_publishers", Path(__file__).with_name("publishers.py"))
assert _spec is not None
assert _spec.loader is not None
publishers = importlib.util.module_from_spec(_spec)
sys.modules["bench_publishers"] = publishers
_spec.loader.exec_module(publishers)


@pytest.fixture
def sequences(tmp_path: Path) -> Path:
    return publishers.sequences(tmp_path / "sequences")


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    return publishers.ratings(tmp_path / "ratings")
