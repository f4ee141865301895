"""A model's name to a pydantic-ai model; nothing is sent.

In:   `provider:model`, and how it is reached.
Out:  a `Model` with HTTP connections of its own, or `ModelSetupError` with what to do about it.
The key goes to the provider's client and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from collab_layer.errors import ModelSetupError
from collab_layer.ports.models import ModelOptions

OURS = {"openai": "llm", "anthropic": "anthropic", "google": "google"}
"""Providers with an extra of our own."""

COMPATIBLE = "openai-compatible"
"""Who stands behind a `base_url`; OpenAI's own key is never sent there."""


def open_model(name: str, options: ModelOptions) -> Model:
    """The model of that name.

    Args:
        name: `provider:model` as pydantic-ai knows them; over a `base_url` the model alone will do.
        options: Where it is and with what key.

    Raises:
        ModelSetupError: No such provider, its package or its key is missing, or an address that
            cannot be one.
    """
    if options.base_url is not None:
        return _compatible(name, options)
    provider, colon, model = name.partition(":")
    if not colon or not provider or not model:
        raise ModelSetupError(name, "write it as `provider:model`, for example `openai:gpt-4o-mini`")
    kind = _kind(name, provider)
    try:
        return infer_model(name, lambda _: kind() if options.api_key is None else kind(api_key=options.api_key))
    except ImportError as error:
        raise _missing(name, provider) from error
    except TypeError as error:
        raise ModelSetupError(name, f"`{provider}` takes no API key; set its own environment variables") from error
    except (UserError, ValueError) as error:
        raise ModelSetupError(name, _unset(error)) from error


def _compatible(name: str, options: ModelOptions) -> Model:
    parts = urlsplit(options.base_url or "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ModelSetupError(name, "its `base_url` is no address; write it as `http://127.0.0.1:8080/v1`")
    try:
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
    except ImportError as error:
        raise _missing(name, "openai") from error
    first, colon, rest = name.partition(":")
    model = rest if colon and _known(first) else name  # `qwen2.5:7b` is a model with a size, not a provider
    if not model:
        raise ModelSetupError(name, "it names no model")
    provider = OpenAICompatibleProvider(COMPATIBLE, base_url=options.base_url or "", api_key=options.api_key)
    return OpenAIChatModel(model, provider=provider)


def _kind(name: str, provider: str) -> Callable[..., Provider[Any]]:
    try:
        return infer_provider_class(provider)
    except ImportError as error:
        raise _missing(name, provider) from error
    except ValueError as error:
        raise ModelSetupError(name, f"there is no provider `{provider}`") from error


def _known(provider: str) -> bool:
    try:
        infer_provider_class(provider)
    except ImportError:
        return True
    except ValueError:
        return False
    return True


def _missing(name: str, provider: str) -> ModelSetupError:
    extra = OURS.get(provider.partition("-")[0])
    cure = f"collab-layer[{extra}]" if extra else f"pydantic-ai-slim[{provider}]"
    return ModelSetupError(name, f"what it needs is not installed; run pip install '{cure}'")


def _unset(error: Exception) -> str:
    """What a provider misses: the variables it names, else its first sentence."""
    said = " ".join(str(error).split()).partition(". ")[0]
    variables = re.findall(r"`[A-Z][A-Z0-9_]{3,}`", said)
    if not variables:
        return f"it cannot be opened: {said}"
    return f"set the environment variable {' or '.join(variables)}, or the role's `api_key`"


__all__ = ["open_model"]
