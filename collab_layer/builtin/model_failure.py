"""What went wrong with a model, as one of our own errors.

In:   an error of pydantic-ai, and what was spent.
Out:  a `ModelError` in our own words: no prompt, no reply, no key, no address, nothing the
      provider wrote.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TypedDict

from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
)

from collab_layer import errors


class Costs(TypedDict):
    """What was spent before it failed, as every `ModelError` carries it."""

    calls: int
    input_tokens: int
    output_tokens: int


class Kind(Enum):
    """What a caller can do about it."""

    BUSY = auto()
    DOWN = auto()
    SETUP = auto()
    REFUSED = auto()


def kind_of(error: ModelAPIError) -> Kind:
    """Wait, try again, change the settings, or leave it; by category, or by status where there is none."""
    if isinstance(error, ModelRateLimitError):
        return Kind.BUSY
    if isinstance(error, (ModelUnavailableError, ModelServerError, ModelConnectionError)):
        return Kind.DOWN
    if isinstance(error, (ModelAuthenticationError, ModelNotFoundError, ModelQuotaExceededError)):
        return Kind.SETUP
    status = error.status_code if isinstance(error, ModelHTTPError) else 0
    if status == 429:
        return Kind.BUSY
    if status in (401, 402, 403, 404):
        return Kind.SETUP
    return Kind.DOWN if status >= 500 else Kind.REFUSED


def failed(name: str, error: ModelAPIError, spent: Costs) -> errors.ModelError:
    """Our error for a request that failed for good."""
    kind = kind_of(error)
    if kind is Kind.BUSY:
        after = error.retry_after
        asks = "" if after is None else f" for {after:g} s"
        return errors.ModelBusyError(name, f"the provider asks to wait{asks}", after_s=after, **spent)
    if isinstance(error, ModelTimeoutError):
        return errors.ModelTimeoutError(name, "the connection timed out", **spent)
    if kind is Kind.DOWN:
        return errors.ModelDownError(name, f"it cannot be reached{_status(error)}", **spent)
    if kind is Kind.SETUP:
        return errors.ModelSetupError(name, _cure(error), **spent)
    if isinstance(error, ModelContextWindowExceededError):
        return errors.ModelReplyError(name, "the question is longer than the model can read", **spent)
    if isinstance(error, (ModelHTTPError, ModelRequestRejectedError)):
        return errors.ModelReplyError(name, f"the provider refused the question{_status(error)}", **spent)
    return unreadable(name, spent)


def unusable(name: str, error: AgentRunError, reply: str, spent: Costs) -> errors.ModelError:
    """Our error for an answer that is none."""
    if isinstance(error, ModelAPIError):
        return failed(name, error, spent)
    if isinstance(error, ContentFilterError):
        return errors.ModelReplyError(name, "the provider's content filter stopped the reply", **spent)
    return errors.ModelReplyError(name, f"no reply fitted `{reply}` in {spent['calls']} requests", **spent)


def unreadable(name: str, spent: Costs) -> errors.ModelError:
    """Our error for an answer that is not even an answer."""
    return errors.ModelReplyError(name, "the provider's answer could not be read", **spent)


def _cure(error: ModelAPIError) -> str:
    if isinstance(error, ModelQuotaExceededError):
        return "the account's quota or credit at the provider is used up"
    if isinstance(error, ModelNotFoundError):
        return f"the provider knows no such model{_status(error)}"
    return f"the provider does not accept the key{_status(error)}"


def _status(error: ModelAPIError) -> str:
    return f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) else ""


__all__ = ["Kind", "Costs", "failed", "kind_of", "unreadable", "unusable"]
