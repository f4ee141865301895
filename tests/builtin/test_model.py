"""The built-in model client: what goes out, what comes back, and every bad answer there is."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator

import pytest
from pydantic import BaseModel, Field
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel as AnyReply

from collab_layer.builtin.model import PydanticAiModel
from collab_layer.errors import (
    ModelBusyError,
    ModelDownError,
    ModelError,
    ModelReplyError,
    ModelSetupError,
    ModelTimeoutError,
)
from collab_layer.ports.models import Answered, Closes, LanguageModel, ModelOptions
from collab_layer.testing.openai_server import FakeOpenAI, HttpAnswer, completion, problem
from collab_layer.types.asking import Prompt

KEY, SAID = "sk-canary-key", "canary-reply"
QUESTION = Prompt("rank", "Answer in JSON.", "canary-prompt: сколько ног у собаки?", max_tokens=100)
GOOD = completion('{"legs": 4, "word": "да"}')


class Legs(BaseModel):
    """The reply; the schema names two words, any text of some length is taken."""

    legs: int = Field(ge=0, le=9)
    word: str = Field("", max_length=40, json_schema_extra={"enum": ["да", "нет"]})


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


def model_at(server: FakeOpenAI, timeout_s: float = 5.0, retries: int = 2) -> PydanticAiModel:
    return PydanticAiModel("openai:small", ModelOptions(server.url, KEY, timeout_s, retries))


def asked(model: PydanticAiModel, prompt: Prompt = QUESTION) -> Answered[Legs]:
    """Ask in a loop of its own, and close what it opened."""

    async def story() -> Answered[Legs]:
        try:
            return await model.complete(prompt, Legs)
        finally:
            await model.aclose()

    return asyncio.run(story())


def failure(server: FakeOpenAI, *answers: HttpAnswer, timeout_s: float = 5.0, retries: int = 2) -> ModelError:
    """The error that those answers end in."""
    server.will(*answers)
    with pytest.raises(ModelError) as caught:
        asked(model_at(server, timeout_s, retries))
    return caught.value


# -- what goes out, what comes back ----------------------------------------------------------


def test_our_words_are_the_system_message_and_the_data_is_the_users(server):
    server.will(GOOD)
    answered = asked(model_at(server))
    assert answered.value == Legs(legs=4, word="да")
    (sent,) = server.requests
    assert [(message["role"], message["content"]) for message in sent["messages"]] == [
        ("system", "Answer in JSON."),
        ("user", QUESTION.data),
    ]
    assert server.keys == [f"Bearer {KEY}"]


def test_a_question_is_asked_at_temperature_0_within_its_tokens(server):
    server.will(GOOD)
    asked(model_at(server))
    (sent,) = server.requests
    assert sent["temperature"] == 0
    assert 100 in (sent.get("max_tokens"), sent.get("max_completion_tokens"))


def test_an_openai_server_is_asked_for_its_own_json_schema_output_with_the_closed_ids(server):
    server.will(GOOD)
    asked(model_at(server))
    wanted = server.requests[0]["response_format"]
    assert wanted["type"] == "json_schema"
    assert wanted["json_schema"]["schema"]["properties"]["word"]["enum"] == ["да", "нет"]


def test_a_word_that_the_schema_does_not_name_still_arrives_so_that_the_stage_can_count_it(server):
    server.will(completion('{"legs": 4, "word": "vielleicht"}'))
    assert asked(model_at(server)).value.word == "vielleicht"


def test_usage_is_what_the_server_reports(server):
    server.will(GOOD)
    usage = asked(model_at(server)).usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens, usage.estimated) == (1, 11, 7, False)
    assert usage.model == "openai:small"


def test_usage_that_the_server_does_not_report_is_estimated_and_marked(server):
    server.will(completion('{"legs": 4}', usage=None))
    usage = asked(model_at(server)).usage
    assert usage.estimated
    assert usage.input_tokens > QUESTION.tokens  # the schema goes along
    assert usage.output_tokens == 3


def test_a_server_that_needs_no_key_gets_none_of_ours(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.will(GOOD)
    asked(PydanticAiModel("openai:small", ModelOptions(server.url)))
    assert KEY not in str(server.keys)


RESPONSE = {
    "id": "r1",
    "object": "response",
    "created_at": 1_700_000_000,
    "status": "completed",
    "model": "gpt",
    "output": [
        {
            "type": "message",
            "id": "m1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": '{"legs": 4}', "annotations": []}],
        }
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 11,
        "output_tokens": 7,
        "total_tokens": 18,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}


@pytest.mark.parametrize(("name", "temperature"), [("openai:gpt-4o-mini", 0.0), ("openai:gpt-5-mini", None)])
def test_openai_itself_is_told_not_to_keep_the_question(server, monkeypatch, name, temperature):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.will(HttpAnswer(json.dumps(RESPONSE).encode()))
    answered = asked(PydanticAiModel(name, ModelOptions(api_key=KEY)))
    assert (answered.value.legs, answered.usage.input_tokens, answered.usage.output_tokens) == (4, 11, 7)
    (sent,) = server.requests
    assert sent["store"] is False
    assert sent["instructions"] == QUESTION.instructions
    assert sent.get("temperature") == temperature  # a model that always thinks takes none


def test_a_model_whose_name_holds_a_colon_is_asked_for_by_its_whole_name(server):
    server.will(GOOD)
    asked(PydanticAiModel("qwen2.5:7b", ModelOptions(server.url)))
    asked(PydanticAiModel("openai:qwen2.5:7b", ModelOptions(server.url)))
    assert [sent["model"] for sent in server.requests] == ["qwen2.5:7b", "qwen2.5:7b"]


def test_it_is_a_language_model_that_can_be_closed(server):
    model = model_at(server)
    assert isinstance(model, LanguageModel)
    assert isinstance(model, Closes)
    assert model.name == "openai:small"


# -- tried again -----------------------------------------------------------------------------

UNFIT = {
    "no JSON": completion(f"I think {SAID}"),
    "a wrong type": completion(f'{{"legs": "{SAID}"}}'),
    "out of range": completion('{"legs": 99}'),
    "too long a word": completion(f'{{"legs": 1, "word": "{SAID * 10}"}}'),
    "cut in half": completion('{"legs": 1, "wor'),
    "empty": completion(""),
    "null": completion(None),
    "a list": completion("[1, 2]"),
}


@pytest.mark.parametrize("bad", UNFIT.values(), ids=UNFIT.keys())
def test_a_reply_that_does_not_fit_is_asked_for_again_and_both_are_counted(server, bad):
    server.will(bad, GOOD)
    answered = asked(model_at(server))
    assert answered.value.legs == 4
    assert (answered.usage.calls, answered.usage.input_tokens, answered.usage.output_tokens) == (2, 22, 14)


@pytest.mark.parametrize("bad", UNFIT.values(), ids=UNFIT.keys())
def test_replies_that_never_fit_end_after_the_retries_and_cost_what_they_cost(server, bad):
    error = failure(server, bad)
    assert type(error) is ModelReplyError
    assert (error.calls, error.input_tokens, error.output_tokens) == (3, 33, 21)
    assert len(server.requests) == 3


def test_a_further_request_shows_the_model_what_did_not_fit(server):
    server.will(completion('{"legs": 99}'), GOOD)
    asked(model_at(server))
    first, second = (sent["messages"] for sent in server.requests)
    assert second[: len(first)] == first
    assert "99" in str(second[len(first) :])
    assert "legs" in str(second[-1])


def test_a_markdown_fence_around_the_reply_does_no_harm(server):
    server.will(completion('```json\n{"legs": 4}\n```'))
    assert asked(model_at(server)).usage.calls == 1


def test_an_error_of_the_server_is_tried_again(server):
    server.will(problem(500), GOOD)
    usage = asked(model_at(server)).usage
    assert (usage.calls, usage.input_tokens) == (2, 11)


def test_a_server_that_stays_broken_is_down(server):
    error = failure(server, problem(503), retries=1)
    assert type(error) is ModelDownError
    assert error.retryable
    assert (error.calls, len(server.requests)) == (2, 2)


def test_a_connection_that_breaks_off_is_tried_again_and_counted_as_sent(server):
    server.will(HttpAnswer(hang_up=True), GOOD)
    usage = asked(model_at(server)).usage
    assert usage.calls == 2
    assert usage.input_tokens > 11
    assert usage.estimated


def test_a_429_with_a_time_is_waited_out_when_it_fits(server):
    server.will(problem(429, Retry_After="1"), GOOD)
    usage = asked(model_at(server)).usage
    assert usage.calls == 2
    assert server.times[1] - server.times[0] >= 1.0


def test_a_429_whose_time_does_not_fit_is_not_waited_for(server):
    before = time.monotonic()
    error = failure(server, problem(429, Retry_After="60"))
    assert type(error) is ModelBusyError
    assert error.after_s == 60
    assert error.calls == 1
    assert time.monotonic() - before < 4


def test_a_429_without_a_time_is_tried_again_after_a_short_wait(server):
    server.will(problem(429), GOOD)
    assert asked(model_at(server)).usage.calls == 2
    assert server.times[1] - server.times[0] >= 0.4


def test_a_429_that_lasts_is_busy_and_says_no_time(server):
    error = failure(server, problem(429), retries=1)
    assert type(error) is ModelBusyError
    assert error.after_s is None
    assert error.calls == 2


def test_retries_of_every_kind_share_one_allowance(server):
    error = failure(server, problem(500), completion("no"), GOOD, retries=1)
    assert type(error) is ModelReplyError
    assert len(server.requests) == 2


def test_a_prompt_may_allow_fewer_requests_than_the_settings(server):
    server.will(completion("no"))
    one = Prompt("rank", "Answer in JSON.", "?", max_tokens=100, requests=1)
    with pytest.raises(ModelReplyError) as caught:
        asked(model_at(server), one)
    assert caught.value.calls == len(server.requests) == 1


# -- not tried again -------------------------------------------------------------------------

FINAL = {
    "cut off": (completion('{"legs": 4}', finish="length"), "cut off at 100 tokens"),
    "a refusal": (completion(None, refusal=f"I will not: {SAID}"), "refused to answer"),
    "a content filter": (completion(None, finish="content_filter"), "content filter"),
    "a filter in mid-reply": (completion('{"legs": 4}', finish="content_filter"), "content filter"),
    "100 kB": (completion(f'{{"legs": 4, "more": "{"x" * 100_000}"}}'), "far longer"),
    "100 kB of nothing": (completion(SAID * 9_000), "far longer"),
}


@pytest.mark.parametrize(("answer", "words"), FINAL.values(), ids=FINAL.keys())
def test_what_another_request_would_not_mend_ends_at_once(server, answer, words):
    error = failure(server, answer)
    assert type(error) is ModelReplyError
    assert words in str(error)
    assert (error.calls, error.input_tokens, error.output_tokens) == (1, 11, 7)
    assert len(server.requests) == 1


UNREADABLE = {
    "a web page": HttpAnswer(f"<html>{SAID}</html>".encode(), headers={"Content-Type": "text/html"}),
    "a web page that claims to be JSON": HttpAnswer(f"<html>{SAID}</html>".encode()),
    "other JSON": HttpAnswer(f'{{"hello": "{SAID}"}}'.encode()),
    "a JSON list": HttpAnswer(b"[1]"),
    "no choices": HttpAnswer(b'{"id": "1", "object": "chat.completion", "created": 1, "model": "x", "choices": []}'),
    "an empty body": HttpAnswer(b""),
    "no content": HttpAnswer(b"", status=204),
}


@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_answer_of_another_protocol_is_no_reply(server, answer):
    error = failure(server, answer)
    assert type(error) is ModelReplyError
    assert error.calls == 1
    assert error.input_tokens > 0


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, ModelSetupError, "does not accept the key"),
        (403, ModelSetupError, "does not accept the key"),
        (404, ModelSetupError, "knows no such model"),
        (402, ModelSetupError, "quota"),
        (400, ModelReplyError, "refused the question (HTTP 400)"),
        (422, ModelReplyError, "refused the question (HTTP 422)"),
    ],
)
def test_a_refused_request_says_what_to_change(server, status, kind, words):
    error = failure(server, problem(status, f"{SAID} {KEY}"))
    assert type(error) is kind
    assert words in str(error)
    assert not error.retryable
    assert (error.calls, error.input_tokens) == (1, 0)


def test_nobody_there_is_down_and_nothing_was_sent(server):
    with FakeOpenAI() as gone:
        url = gone.url
    with pytest.raises(ModelDownError) as caught:
        asked(PydanticAiModel("openai:small", ModelOptions(url)))
    assert caught.value.calls == 0


# -- in time ---------------------------------------------------------------------------------


@pytest.mark.parametrize("slow", [HttpAnswer(stall=True), HttpAnswer(GOOD.body, drip=True)], ids=["never", "drip"])
def test_the_time_is_for_everything_and_what_was_sent_is_counted(server, slow):
    before = time.monotonic()
    error = failure(server, slow, timeout_s=0.6)
    assert type(error) is ModelTimeoutError
    assert time.monotonic() - before < 4
    assert error.calls == 1
    assert error.input_tokens > QUESTION.tokens


def test_the_time_is_for_all_requests_together(server):
    error = failure(server, problem(500), problem(500), HttpAnswer(stall=True), timeout_s=2.0)
    assert type(error) is ModelTimeoutError
    assert error.calls == 3


async def cancelled(model: PydanticAiModel, server: FakeOpenAI) -> None:
    task = asyncio.ensure_future(model.complete(QUESTION, Legs))
    await asyncio.to_thread(server.came.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.will(GOOD)
    assert (await model.complete(QUESTION, Legs)).value.legs == 4
    await model.aclose()


def test_a_cancelled_question_leaves_the_client_usable(server):
    server.will(HttpAnswer(stall=True))
    asyncio.run(cancelled(model_at(server), server))


# -- discretion ------------------------------------------------------------------------------

TELLING = [
    *(answer for answer, _ in FINAL.values()),
    *UNFIT.values(),
    *UNREADABLE.values(),
    problem(401, f"{SAID} {KEY}"),
    problem(400, SAID),
    problem(429, SAID, Retry_After="99"),
]


def test_no_error_and_no_log_record_holds_prompt_reply_or_key(server, caplog):
    caplog.set_level(logging.DEBUG)
    told = ""
    for answer in TELLING:
        error = failure(server, answer, retries=0)
        told += "".join(traceback.format_exception(error)) + repr(error.__dict__)
        assert error.__cause__ is None
        assert error.__context__ is None
        assert type(pickle.loads(pickle.dumps(error))) is type(error)
    told += caplog.text + repr(model_at(server))
    for canary in (KEY, SAID, QUESTION.data):
        assert canary not in told


def test_what_others_log_through_the_same_sdk_is_left_alone(caplog):
    caplog.set_level(logging.DEBUG)
    logging.getLogger("openai._base_client").debug("somebody else's request")
    assert "somebody else's request" in caplog.text


# -- loops -----------------------------------------------------------------------------------


def test_one_client_serves_one_loop_after_another(server):
    server.will(GOOD)
    model = model_at(server)
    assert [asked(model).value.legs for _ in range(3)] == [4, 4, 4]


def test_one_client_serves_two_loops_at_once(server):
    server.will(completion('{"legs": 4}', after_s=0.2))
    model = model_at(server)
    got: list[int] = []

    def run() -> None:
        async def story() -> None:
            for _ in range(3):
                got.append((await model.complete(QUESTION, Legs)).value.legs)
            await model.aclose()

        asyncio.run(story())

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert got == [4] * 6


def test_a_closed_client_opens_again_when_it_is_asked(server):
    server.will(GOOD)
    model = model_at(server)

    async def story() -> None:
        for _ in range(2):
            await model.complete(QUESTION, Legs)
            await model.aclose()
            await model.aclose()

    asyncio.run(story())
    assert len(server.requests) == 2


# -- setting up ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("openai:gpt-4o-mini", ModelOptions(), "`OPENAI_API_KEY`, or the role's `api_key`"),
        ("gpt-4o-mini", ModelOptions(), "write it as `provider:model`"),
        ("openai:", ModelOptions(), "write it as `provider:model`"),
        (":gpt", ModelOptions(), "write it as `provider:model`"),
        ("test", ModelOptions(), "write it as `provider:model`"),
        ("nobody:gpt", ModelOptions(), "there is no provider `nobody`"),
        ("openai:x", ModelOptions("127.0.0.1:80/v1", KEY), "`base_url` is no address"),
        ("openai:x", ModelOptions("ftp://127.0.0.1", KEY), "`base_url` is no address"),
        ("openai:", ModelOptions("http://127.0.0.1:9/v1"), "names no model"),
    ],
)
def test_a_setup_that_cannot_work_is_told_at_opening(monkeypatch, name, options, words):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelSetupError, match=words.replace("`", ".")) as caught:
        PydanticAiModel(name, options)
    assert KEY not in str(caught.value)


def test_nothing_is_sent_at_opening(server):
    model_at(server)
    assert server.requests == []


WITHOUT = """
import sys
sys.modules[{module!r}] = None  # as if it were not installed
from collab_layer.plugins.manager import load
from collab_layer.ports.models import ModelOptions
from collab_layer.errors import ModelSetupError
try:
    load().models["pydantic-ai"].open({name!r}, ModelOptions(api_key="sk-x"))
except ModelSetupError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "name", "cure"),
    [
        ("pydantic_ai", "openai:gpt-4o-mini", "pip install 'collab-layer[llm]'"),
        ("openai", "openai:gpt-4o-mini", "pip install 'collab-layer[llm]'"),
        ("anthropic", "anthropic:claude-sonnet-4-5", "pip install 'collab-layer[anthropic]'"),
        ("google.genai", "google:gemini-2.5-flash", "pip install 'collab-layer[google]'"),
        ("groq", "groq:llama-3.3", "pip install 'pydantic-ai-slim[groq]'"),
    ],
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(module, name, cure):
    program = WITHOUT.format(module=module, name=name)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert cure in done.stdout, done.stderr


# -- over pydantic-ai's own test models ------------------------------------------------------


def test_a_model_without_json_schema_output_is_asked_through_a_tool():
    tool = AnyReply(custom_output_args={"legs": 4})
    answered = asked(PydanticAiModel("test", model=tool))
    assert answered.value.legs == 4
    parameters = tool.last_model_request_parameters
    assert parameters is not None
    assert parameters.output_mode == "tool"


def test_any_status_that_a_provider_raises_without_a_category_is_mapped():
    def raising(status: int) -> PydanticAiModel:
        def call(messages: list, info: AgentInfo) -> ModelResponse:
            raise ModelHTTPError(status, "function", SAID)

        return PydanticAiModel("function", ModelOptions(retries=0), model=FunctionModel(call))

    expected = {429: ModelBusyError, 500: ModelDownError, 401: ModelSetupError, 418: ModelReplyError}
    for status, kind in expected.items():
        with pytest.raises(ModelError) as caught:
            asked(raising(status))
        assert type(caught.value) is kind
