"""The client against a real server and a real, small model: contracts only, never quality."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel, Field

from collab_layer.builtin.model import PydanticAiModel
from collab_layer.errors import ModelReplyError, ModelTimeoutError
from collab_layer.ports.models import Answered, ModelOptions
from collab_layer.types.asking import Prompt

pytestmark = [pytest.mark.llm, pytest.mark.timeout(300)]

IDS = ["f1", "f2", "f3"]
NOTES = "Заметки:\n[f1] вход через SSO зациклился\n[f2] the certificate was rotated\n[f3] Anna likes long films"


class Picked(BaseModel):
    """Validates leniently; the ids and the bounds are in the schema."""

    ids: list[str] = Field(json_schema_extra={"items": {"type": "string", "enum": IDS}, "maxItems": 3})
    why: str = Field(json_schema_extra={"maxLength": 40})


def ask(url: str, prompt: Prompt, reply: type[Any] = Picked, timeout_s: float = 100.0, retries: int = 2) -> Answered:
    model = PydanticAiModel("openai:smollm2-135m", ModelOptions(url, timeout_s=timeout_s, retries=retries))

    async def story() -> Answered:
        try:
            return await model.complete(prompt, reply)
        finally:
            await model.aclose()

    return asyncio.run(story())


def question(max_tokens: int = 120) -> Prompt:
    return Prompt("synthesize", "Pick the notes about login. Answer in JSON.", NOTES, max_tokens)


def test_a_reply_fits_its_type_and_names_only_the_closed_ids(small_model):
    answered = ask(small_model, question())
    assert isinstance(answered.value, Picked)
    assert set(answered.value.ids) <= set(IDS)
    assert len(answered.value.ids) <= 3
    assert len(answered.value.why) <= 40


def test_the_server_reports_what_it_cost(small_model):
    usage = ask(small_model, question()).usage
    assert not usage.estimated
    assert usage.calls >= 1
    assert 20 < usage.input_tokens / usage.calls < 400
    assert 0 < usage.output_tokens <= 120 * usage.calls


def test_a_reply_that_is_cut_off_is_no_reply(small_model):
    with pytest.raises(ModelReplyError, match="cut off at 5 tokens") as caught:
        ask(small_model, question(max_tokens=5))
    assert caught.value.calls == 1
    assert caught.value.output_tokens == 5
    assert caught.value.input_tokens > 20


def test_a_question_that_is_longer_than_the_model_can_read_says_so(small_model):
    long = Prompt("synthesize", "Answer in JSON.", "word " * 12_000, 50)
    with pytest.raises(ModelReplyError) as caught:
        ask(small_model, long)
    assert caught.value.calls == 1
    assert "word word" not in str(caught.value)


def test_the_time_is_kept_against_a_slow_model(small_model):
    with pytest.raises(ModelTimeoutError) as caught:
        ask(small_model, question(), timeout_s=0.05)
    assert caught.value.calls == 1


class Far(BaseModel):
    """Asks for more than the schema lets the model say: nothing can ever fit."""

    n: int = Field(ge=100, json_schema_extra={"enum": [1, 2, 3]})


def test_replies_that_never_fit_are_asked_for_again_and_all_counted(small_model):
    with pytest.raises(ModelReplyError, match="in 3 requests") as caught:
        ask(small_model, question(), reply=Far)
    assert caught.value.calls == 3
    assert caught.value.output_tokens > 0
