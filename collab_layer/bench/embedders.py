"""What turns texts into vectors in a measurement; every report names it.

In:   a name, as `hashing` or `onnx:DIR`.
Out:  an embedder: the one named, else what a layer opened here without one would take.
"""

from __future__ import annotations

from collab_layer.config import Settings
from collab_layer.plugins.manager import DEFAULT_EMBEDDER, load
from collab_layer.ports.models import Embedder


def opened(name: str | None = None) -> Embedder:
    """An embedder by name; None takes the one of the settings, else the built-in one.

    Raises:
        InputError: There is none of that name.
        ModelSetupError: It cannot be opened.
    """
    settings = Settings()
    return load(settings.disabled_plugins).embedder(name or settings.embedder or DEFAULT_EMBEDDER)


__all__ = ["opened"]
