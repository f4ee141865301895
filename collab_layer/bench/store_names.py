"""Contestants by name, and whom each is compared with.

In:   what a user types: `mem0`, or `name=package.module:factory`.
Out:  factories of stores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

from collab_layer.bench.stores import Opens
from collab_layer.errors import InputError
from collab_layer.ports.models import Embedder

KNOWN = {
    "mem0": "collab_layer.bench.mem0_store:alone",
    "mem0-pool": "collab_layer.bench.mem0_store:shared",
    "mem0-ours": "collab_layer.bench.mem0_store:together",
}
"""Contestants that are a part of the benchmark."""
RESERVED = frozenset(("own", "pool", "ours", "prior"))
"""Names of our own contestants."""
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


def named_stores(given: Sequence[str], embedder: Embedder | None = None) -> dict[str, Opens]:
    """Factories of stores by name.

    Args:
        given: Each a name of `KNOWN`, or `name=package.module:factory`.
        embedder: Of the run; a factory that takes a keyword `embedder` is called with it.

    Raises:
        InputError: One cannot be imported, its name is used twice or is not plain.
    """
    found: dict[str, Opens] = {}
    for one in given:
        name, equals, path = one.partition("=")
        path = path if equals else KNOWN.get(name, "")
        if not path or not _NAME.fullmatch(name):
            known = ", ".join(KNOWN)
            raise InputError(
                f"give a store as `name=package.module:factory`, the name plain, or as {known}; not {one!r}"
            )
        if name in found or name in RESERVED:
            raise InputError(f"the name {name!r} is taken; give the store another")
        found[name] = _factory(path, embedder)
    return found


def alone_of(arm: str, arms: Container[str]) -> str:
    """Whose answers a contestant is compared with: `x` for `x-y` if both compete, else our own memory alone."""
    base = arm.partition("-")[0]
    return base if base != arm and base in arms else "own"


def _factory(path: str, embedder: Embedder | None) -> Opens:
    module, colon, attribute = path.partition(":")
    if not colon or not module:
        raise InputError(f"name a store as `package.module:factory`, not {path!r}")
    try:
        factory = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"the store {path!r} cannot be imported: {error}") from error
    if not callable(factory):
        raise InputError(f"the store {path!r} is no function or class that makes one")
    opens: Any = factory
    return partial(opens, embedder=embedder) if embedder is not None and _takes_embedder(factory) else opens


def _takes_embedder(factory: Callable[..., object]) -> bool:
    try:
        return "embedder" in signature(factory).parameters
    except ValueError:  # some classes written in C tell nothing
        return False


__all__ = ["KNOWN", "alone_of", "named_stores"]
