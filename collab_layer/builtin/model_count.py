"""What one question costs, request by request, and when it is tried again.

In:   the requests that pydantic-ai makes for one question.
Out:  the same, counted; waits where the provider asks for it and the time allows.
A request is counted when it is sent. What a provider does not report is estimated and marked.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError, ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from collab_layer.builtin.model_failure import Costs, Kind, failed, kind_of
from collab_layer.errors import ModelReplyError
from collab_layer.types.asking import Prompt, Usage
from collab_layer.types.tokens import estimate_tokens

FIRST_WAIT_S = 0.5
"""Before the second request where the provider names no time; doubled each time."""

SLACK = 2.0
"""How far the estimate of a reply's tokens may be off before the reply counts as too long."""


@dataclass(slots=True)
class Tally:
    """What a question has cost so far.

    Attributes:
        limit: The most requests.
        calls: Requests sent.
        open_tokens: Estimated tokens of a request that no answer came to yet; they are paid for.
    """

    limit: int
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    open_tokens: int = 0

    def spent(self) -> Costs:
        """For an error's facts."""
        given = self.input_tokens + self.open_tokens
        return Costs(calls=self.calls, input_tokens=given, output_tokens=self.output_tokens)

    def usage(self, model: str) -> Usage:
        """For a reply."""
        return Usage(model=model, estimated=self.estimated or self.open_tokens > 0, **self.spent())

    def sending(self, tokens: int) -> None:
        """A request goes out."""
        self.calls += 1
        self.open_tokens = tokens

    def answered(self, response: ModelResponse) -> None:
        """Take what the provider reports, or our estimate of it."""
        usage = response.usage
        if usage.input_tokens or usage.output_tokens:
            self.input_tokens += usage.input_tokens
            self.output_tokens += usage.output_tokens
        else:
            self.estimated = True
            self.input_tokens += self.open_tokens
            self.output_tokens += estimate_tokens(_said(response))
        self.open_tokens = 0

    def turned_away(self, error: ModelAPIError) -> None:
        """A request that failed: not sent, refused for free, or sent and paid for."""
        if unsent(error):
            self.calls -= 1
        elif not isinstance(error, ModelHTTPError):
            self.input_tokens += self.open_tokens
            self.estimated = True
        self.open_tokens = 0


class Counted(WrapperModel):
    """A model while it is asked one question.

    Args:
        wrapped: The model.
        name: As errors call it.
        prompt: The question.
        tally: Where it is counted.
        ends: When its time is over, by the loop's clock.
    """

    def __init__(self, wrapped: Model, name: str, prompt: Prompt, tally: Tally, ends: float) -> None:
        super().__init__(wrapped)
        self._name, self._prompt, self._tally, self._ends = name, prompt, tally, ends

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Send it, again where that may help and there is time."""
        tokens = _asked(messages, model_request_parameters)
        while True:
            if self._tally.calls >= self._tally.limit:
                raise ModelReplyError(self._name, "no reply fitted, and no request is left", **self._tally.spent())
            self._tally.sending(tokens)
            try:
                response = await self.wrapped.request(messages, model_settings, model_request_parameters)
            except ModelAPIError as error:
                problem = error
            else:
                self._tally.answered(response)
                return self._checked(response)
            self._tally.turned_away(problem)
            wait = self._wait(problem)
            if wait is None:
                raise failed(self._name, problem, self._tally.spent())
            await asyncio.sleep(wait)

    def _wait(self, problem: ModelAPIError) -> float | None:
        """Seconds until the next request; None if there is to be none."""
        if kind_of(problem) not in (Kind.BUSY, Kind.DOWN) or unsent(problem) or self._tally.calls >= self._tally.limit:
            return None
        named = problem.retry_after
        wait = FIRST_WAIT_S * 2 ** (self._tally.calls - 1) if named is None else named
        left = self._ends - asyncio.get_running_loop().time()
        return wait if wait < left else None

    def _checked(self, response: ModelResponse) -> ModelResponse:
        """Refuse what another request would not mend: a refusal, and a reply that is cut off or far too long."""
        why = None
        if response.finish_reason == "content_filter":
            refused = "refusal" in (response.provider_details or {})
            why = "the model refused to answer" if refused else "the provider's content filter stopped the reply"
        elif response.finish_reason == "length":
            why = f"the reply was cut off at {self._prompt.max_tokens} tokens"
        elif estimate_tokens(_said(response, thoughts=False)) > SLACK * self._prompt.max_tokens:
            why = f"the reply is far longer than the {self._prompt.max_tokens} tokens it may have"
        if why is not None:
            raise ModelReplyError(self._name, why, **self._tally.spent())
        return response


def unsent(error: ModelAPIError) -> bool:
    """Whether nobody was there to take the request."""
    return isinstance(error, ModelConnectionError) and error.phase in ("connect", "pool")


def _asked(messages: list[ModelMessage], parameters: ModelRequestParameters) -> int:
    """Estimated tokens of a request: instructions, messages, and the schema of the reply."""
    texts: list[str] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            texts += [str(getattr(part, "content", "")) for part in message.parts]
        else:
            texts.append(_said(message))
    last = messages[-1]
    texts.append((last.instructions or "") if isinstance(last, ModelRequest) else "")
    schemas: list[Any] = [tool.parameters_json_schema for tool in parameters.output_tools]
    if parameters.output_object is not None:
        schemas.append(parameters.output_object.json_schema)
    texts += [json.dumps(schema, ensure_ascii=False) for schema in schemas]
    return sum(estimate_tokens(text) for text in texts)


def _said(response: ModelResponse, *, thoughts: bool = True) -> str:
    texts: list[str] = []
    for part in response.parts:
        if isinstance(part, TextPart) or (thoughts and isinstance(part, ThinkingPart)):
            texts.append(part.content)
        elif isinstance(part, ToolCallPart):
            texts.append(part.args_as_json_str())
    return "".join(texts)


__all__ = ["Counted", "Tally"]
