"""Whether what a plugin brings fits the hooks.

In:   a plugin, or what one of its hooks returned.
Out:  the descriptions it returned, or `UnfitError` with a sentence saying what does not fit.
Pure: nothing is imported, registered or opened.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, cast

from collab_layer.plugins.specs import (
    BackendSpec,
    DomainSpec,
    EmbedderSpec,
    FeatureSpec,
    LinkerSpec,
    ModelSpec,
    RunnerSpec,
    ShareFilterSpec,
    SinkSpec,
)
from collab_layer.ports.backend import Can

Spec = (
    BackendSpec
    | EmbedderSpec
    | ModelSpec
    | DomainSpec
    | LinkerSpec
    | FeatureSpec
    | ShareFilterSpec
    | SinkSpec
    | RunnerSpec
)

PREFIX = "collab_"
"""What every hook's name begins with."""

COMMANDS_HOOK = "collab_register_commands"

REGISTERS: Mapping[str, type[Spec]] = {
    "collab_register_backends": BackendSpec,
    "collab_register_embedders": EmbedderSpec,
    "collab_register_models": ModelSpec,
    "collab_register_domains": DomainSpec,
    "collab_register_linkers": LinkerSpec,
    "collab_register_features": FeatureSpec,
    "collab_register_share_filters": ShareFilterSpec,
    "collab_register_sinks": SinkSpec,
    "collab_register_runners": RunnerSpec,
}
"""The hooks that return descriptions, and of what type."""

_CALLABLE = ("open", "link", "filter", "tell", "run", "compute")
"""The attributes of descriptions that are called later."""


class UnfitError(Exception):
    """What a plugin brings does not fit the hooks; the text says what."""


def check_spelling(plugin: object, marked: Iterable[str]) -> None:
    """Refuse functions that look like hooks and would never be called.

    Functions that a module merely imported are not its hooks and are left alone.

    Args:
        plugin: A module or an object.
        marked: Names that carry `@hookimpl`.

    Raises:
        UnfitError: A `collab_…` function that is no hook, or that lacks `@hookimpl`.
    """
    hooks = {*REGISTERS, COMMANDS_HOOK}
    called = set(marked)
    for name in dir(plugin):
        if not name.startswith(PREFIX) or name in called or not _own(plugin, name):
            continue
        if name in hooks:
            raise UnfitError(f"`{name}` lacks `@hookimpl`, so it would never be called")
        near = difflib.get_close_matches(name, hooks, n=1)
        raise UnfitError(f"`{name}` is no hook" + (f"; is `{near[0]}` meant?" if near else ""))


def descriptions(hook: str, returned: object) -> tuple[Spec, ...]:
    """What a hook returned, checked.

    Raises:
        UnfitError: Not an iterable, an item of another type, or an item that cannot work.
    """
    wanted = REGISTERS[hook]
    if isinstance(returned, str) or not isinstance(returned, Iterable):
        raise UnfitError(f"`{hook}` returned {type(returned).__name__}, several {wanted.__name__} are needed")
    items = tuple(cast("Iterable[Any]", returned))
    for position, item in enumerate(items):
        where = f"item {position} of `{hook}`"
        if not isinstance(item, wanted):
            raise UnfitError(f"{where} is {type(item).__name__}, {wanted.__name__} is needed")
        _check_item(where, item)
    return items


def _check_item(where: str, item: Spec) -> None:
    if not item.name:
        raise UnfitError(f"{where} has no name")
    for attribute in _CALLABLE:
        if not callable(getattr(item, attribute, len)):
            raise UnfitError(f"`{attribute}` of `{item.name}` ({where}) cannot be called")
    if isinstance(item, BackendSpec):
        unknown = sorted(str(ability) for ability in item.can if ability not in set(Can))
        if unknown:
            raise UnfitError(f"`{item.name}` ({where}) promises `{unknown[0]}`, which is no ability")
    if isinstance(item, FeatureSpec) and not (
        math.isfinite(item.low) and math.isfinite(item.high) and item.low <= item.high
    ):
        raise UnfitError(f"the bounds [{item.low}, {item.high}] of `{item.name}` ({where}) are not finite and in order")


def _own(plugin: object, name: str) -> bool:
    value = getattr(plugin, name)
    return callable(value) and (
        not isinstance(plugin, ModuleType) or getattr(value, "__module__", None) == plugin.__name__
    )
