"""A scripted model says what was written down, and fails where a real one would."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import BaseModel

from collab_layer.errors import BackendDownError, BackendError
from collab_layer.ports.models import LanguageModel
from collab_layer.testing import ScriptedModel


class Verdict(BaseModel):
    label: str
    score: int = 0


def ask(model: ScriptedModel, prompt: str = "Which?", max_tokens: int = 100):
    return asyncio.run(model.complete(prompt, Verdict, max_tokens=max_tokens))


def test_replies_come_in_order_and_prompts_are_kept():
    model = ScriptedModel([{"label": "first"}, Verdict(label="second", score=2)])
    assert isinstance(model, LanguageModel)
    assert ask(model, "one").value == Verdict(label="first")
    assert ask(model, "two").value == Verdict(label="second", score=2)
    assert model.prompts == ["one", "two"]
    with pytest.raises(BackendError, match="no further reply"):
        ask(model, "three")


def test_a_function_answers_every_prompt():
    model = ScriptedModel(lambda prompt: {"label": prompt.upper()})
    assert [ask(model, word).value.label for word in ("a", "b")] == ["A", "B"]


def test_usage_is_counted():
    usage = ask(ScriptedModel([{"label": "x" * 40}]), "y" * 80).usage
    assert (usage.calls, usage.input_tokens) == (1, 20)
    assert usage.output_tokens >= 10


@pytest.mark.parametrize("reply", [{"label": 3}, {}, {"label": "x" * 4000}])
def test_a_reply_that_does_not_fit_is_an_error(reply):
    with pytest.raises(BackendError, match="scripted"):
        ask(ScriptedModel([reply]))


def test_an_outage_can_be_scripted():
    model = ScriptedModel([BackendDownError("scripted", "no route"), {"label": "back"}])
    with pytest.raises(BackendDownError):
        ask(model)
    assert ask(model).value.label == "back"
