"""The built-in client of language models: any provider that pydantic-ai knows.

In:   a prompt and the pydantic type of its reply.
Out:  a validated reply and what it cost, every request counted; or a `ModelError`.
Never: the prompt, the reply or the key in an error or a log record; a request at opening.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar
from typing import Any, cast
from weakref import WeakKeyDictionary

from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from collab_layer.builtin.model_count import Counted, Tally
from collab_layer.builtin.model_failure import unreadable, unusable
from collab_layer.builtin.model_open import open_model
from collab_layer.errors import ModelError, ModelSetupError, ModelTimeoutError
from collab_layer.ports.models import Answered, ModelOptions, Reply
from collab_layer.types.asking import Prompt

NATIVE = ("OpenAIChatModel", "OpenAIResponsesModel")
"""Clients of servers whose own JSON-schema output is the way that works with most of them."""

MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What clients raise over an answer that lacks what they take for granted."""

_asking: ContextVar[bool] = ContextVar("collab_layer_asking", default=False)


class PydanticAiModel:
    """A language model behind pydantic-ai, asked at temperature 0.

    Args:
        name: `provider:model`, as pydantic-ai knows them.
        options: How it is reached.
        model: A model that is open already, of whatever class; then `name` is only its name.

    Raises:
        ModelSetupError: It cannot be opened as it is set up. Nothing is sent to find out.
    """

    def __init__(self, name: str, options: ModelOptions | None = None, *, model: Model | None = None) -> None:
        self._name, self._options = name, options or ModelOptions()
        self._given = model
        self._ready: Model | None = model or open_model(name, self._options)
        self._of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Model] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"PydanticAiModel({self._name!r})"

    @property
    def name(self) -> str:
        """Provider and model, as given."""
        return self._name

    async def complete(self, prompt: Prompt, reply: type[Reply], /) -> Answered[Reply]:
        """Ask once; replies that do not fit and answers of "try again" cost further requests.

        Raises:
            ModelError: No usable reply; see the tree in `collab_layer.errors`.
        """
        allowed = self._options.retries + 1
        tally = Tally(allowed if prompt.requests is None else max(1, min(allowed, prompt.requests)))
        token = _asking.set(True)
        try:
            async with asyncio.timeout(self._options.timeout_s):
                value = await self._run(prompt, reply, tally)
            return Answered(value, tally.usage(self._name))
        except TimeoutError:
            why = f"no answer within {self._options.timeout_s:g} s"
            failure: ModelError = ModelTimeoutError(self._name, why, **tally.spent())
        except AgentRunError as error:
            failure = unusable(self._name, error, reply.__name__, tally.spent())
        except UserError:
            failure = ModelSetupError(self._name, "pydantic-ai cannot ask it for structured output", **tally.spent())
        except MALFORMED:
            failure = unreadable(self._name, tally.spent())
        finally:
            _asking.reset(token)
        raise failure  # here, so that it carries no trace of what was said

    async def aclose(self) -> None:
        """Close the connections of the running loop; the next question opens new ones."""
        loop = asyncio.get_running_loop()
        model = self._of_loop.pop(loop, None)
        if model is not None:
            async with model:  # the last one out closes them
                pass

    async def _run(self, prompt: Prompt, reply: type[Reply], tally: Tally) -> Reply:
        model = self._model()
        ends = asyncio.get_running_loop().time() + self._options.timeout_s
        # What does not depend on the reply's type is not worth keeping: an agent is made in 3 ms.
        agent: Agent[object, Any] = Agent(
            Counted(model, self._name, prompt, tally, ends),
            output_type=NativeOutput(reply) if _native(model) else reply,
            instructions=prompt.instructions,
            retries=tally.limit - 1,
        )
        return (await agent.run(prompt.data, model_settings=_settings(model, prompt), infer_name=False)).output

    def _model(self) -> Model:
        """One per event loop: connections belong to the loop that opened them."""
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        if loop not in self._of_loop:
            ready, self._ready = self._ready, None
            self._of_loop[loop] = ready or open_model(self._name, self._options)
        return self._of_loop[loop]


def _settings(model: Model, prompt: Prompt) -> ModelSettings:
    # Thoughts count as output: they would use up what the reply needs.
    settings = ModelSettings(max_tokens=prompt.max_tokens, thinking=False)
    if not model.profile.get("thinking_always_enabled"):
        settings["temperature"] = 0.0  # the others take none, and pydantic-ai would warn
    if "max_retries" not in model.unsupported_settings:
        settings["max_retries"] = 0  # we count and pace requests ourselves
    if _of(model, "OpenAIResponsesModel"):
        cast("dict[str, Any]", settings)["openai_store"] = False  # OpenAI would keep the question for a month
    return settings


def _of(model: Model, *kinds: str) -> bool:
    """By name, so that no provider's SDK is imported to find out."""
    return any(kind.__name__ in kinds for kind in type(model).__mro__)


def _native(model: Model) -> bool:
    return _of(model, *NATIVE) and bool(model.profile.get("supports_json_schema_output"))


def _discreet(record: logging.LogRecord) -> bool:
    """Whether a record may be logged: at DEBUG the providers' SDKs write whole prompts."""
    return record.levelno > logging.DEBUG or not _asking.get()


for _sdk in ("openai", "anthropic", "groq"):
    logging.getLogger(f"{_sdk}._base_client").addFilter(_discreet)

__all__ = ["PydanticAiModel"]
