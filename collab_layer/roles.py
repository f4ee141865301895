"""Who is asked in which role: settings, plugins and what `open` was given, to `Asked`.

In:   `RoleSettings` of each role; a model, its name, or nothing.
Out:  the models that there are, opened, each with its budget. Nothing is sent.
"""

from __future__ import annotations

from collections.abc import Mapping

from collab_layer.config import RoleSettings, Settings
from collab_layer.errors import InputError, ModelSetupError
from collab_layer.flows.tools import Asked
from collab_layer.plugins.manager import Plugins
from collab_layer.ports.models import LanguageModel, ModelOptions
from collab_layer.types.asking import Role

Given = LanguageModel | str | None
"""A model as it is, the name of one, or None for the name in the settings."""

DEFAULT_CLIENT = "pydantic-ai"
"""The built-in client; names that no other client claims are its own."""

GRACE_S = 1.0
"""What a client that keeps its own time gets on top, since it knows better what was sent."""


def open_models(plugins: Plugins, settings: Settings, given: Mapping[Role, Given]) -> dict[Role, Asked]:
    """The model of each role that has one.

    Raises:
        ModelSetupError: A model cannot be opened as it is set up.
        InputError: Something that is no model was given.
    """
    used: dict[Role, RoleSettings] = {"memory": settings.memory, "reasoning": settings.reasoning}
    opened: dict[Role, Asked] = {}
    for role, of_role in used.items():
        asked = _asked(plugins, role, given.get(role), of_role)
        if asked is not None:
            opened[role] = asked
    return opened


def _asked(plugins: Plugins, role: Role, given: Given, settings: RoleSettings) -> Asked | None:
    calls, tokens = settings.calls_per_day, settings.tokens_per_day
    name = settings.model if given is None else given
    if name is None:
        return None
    if not isinstance(name, str):
        if not isinstance(name, LanguageModel):  # pyright: ignore[reportUnnecessaryIsInstance]  callers pass anything
            raise InputError(f"the {role} model must be a name or have `name` and `complete`")
        return Asked(name, settings.timeout_s, 1, calls, tokens)
    model = _open(plugins, name, _options(settings))
    return Asked(model, settings.timeout_s + GRACE_S, settings.retries + 1, calls, tokens)


def _open(plugins: Plugins, name: str, options: ModelOptions) -> LanguageModel:
    client, colon, own_name = name.partition(":")
    if colon and client != DEFAULT_CLIENT and client in plugins.models:
        return plugins.models[client].open(own_name, options)
    if DEFAULT_CLIENT not in plugins.models:
        raise ModelSetupError(name, "no client is left that could open it; the built-in plugin is switched off")
    return plugins.models[DEFAULT_CLIENT].open(name, options)


def _options(settings: RoleSettings) -> ModelOptions:
    key = None if settings.api_key is None else settings.api_key.get_secret_value()
    return ModelOptions(settings.base_url, key, settings.timeout_s, settings.retries)


__all__ = ["DEFAULT_CLIENT", "Given", "open_models"]
