"""Tiny plugins that are installed for real: a module and its .dist-info on the path."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

HEAD = """
from collab_layer import hookimpl
from collab_layer.plugins.specs import *
from collab_layer.ports.backend import Can
"""


class Site:
    """A folder on `sys.path` into which plugins are installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, name: str, source: str, *, distribution: str | None = None, head: str = HEAD) -> str:
        """Write the module and its metadata; the name of the module."""
        owner = distribution or f"collab-{name}"
        module = f"plugin_{owner}_{name}".replace("-", "_")
        (self.folder / f"{module}.py").write_text(head + textwrap.dedent(source), encoding="utf-8")
        info = self.folder / f"{owner.replace('-', '_')}-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {owner}\nVersion: 1.0\n", encoding="utf-8")
        points = info / "entry_points.txt"
        before = points.read_text(encoding="utf-8") if points.exists() else "[collab_layer]\n"
        points.write_text(f"{before}{name} = {module}\n", encoding="utf-8")
        importlib.invalidate_caches()
        return module

    def forget_modules(self) -> None:
        """Let the next test import its own modules."""
        for module in [name for name in sys.modules if name.startswith("plugin_")]:
            del sys.modules[module]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A folder on the path into which a test installs plugins."""
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = Site(tmp_path)
    yield folder
    folder.forget_modules()
