"""A scripted model says what was written down, and fails where a real one would."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import BaseModel

from collab_layer.errors import ModelDownError, ModelReplyError
from collab_layer.ports.models import LanguageModel
from collab_layer.testing import ScriptedModel
from collab_layer.types.asking import Prompt


class Verdict(BaseModel):
    label: str
    score: int = 0


def ask(model: ScriptedModel, prompt: str = "Which?", max_tokens: int = 100):
    return asyncio.run(model.complete(Prompt("rank", "Judge.", prompt, max_tokens), Verdict))


def test_replies_come_in_order_and_prompts_are_kept():
    model = ScriptedModel([{"label": "first"}, Verdict(label="second", score=2)])
    assert isinstance(model, LanguageModel)
    assert ask(model, "one").value == Verdict(label="first")
    assert ask(model, "two").value == Verdict(label="second", score=2)
    assert [prompt.data for prompt in model.prompts] == ["one", "two"]
    with pytest.raises(ModelReplyError, match="no further reply"):
        ask(model, "three")


def test_a_function_answers_every_prompt():
    model = ScriptedModel(lambda prompt: {"label": prompt.data.upper()})
    assert [ask(model, word).value.label for word in ("a", "b")] == ["A", "B"]


def test_usage_is_counted():
    usage = ask(ScriptedModel([{"label": "x" * 40}]), "y" * 80).usage
    assert (usage.calls, usage.input_tokens, usage.estimated) == (1, 22, True)
    assert usage.output_tokens >= 10


@pytest.mark.parametrize("reply", [{"label": 3}, {}, {"label": "x" * 4000}])
def test_a_reply_that_does_not_fit_is_an_error(reply):
    with pytest.raises(ModelReplyError, match="scripted"):
        ask(ScriptedModel([reply]))


def test_an_outage_can_be_scripted():
    model = ScriptedModel([ModelDownError("scripted", "no route"), {"label": "back"}])
    with pytest.raises(ModelDownError):
        ask(model)
    assert ask(model).value.label == "back"
