"""One plugin per hook, installed for real, and what a layer then finds."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from collab_layer import CollabLayer
from collab_layer.config import RoleSettings, Settings
from collab_layer.errors import InputError
from collab_layer.plugins import hookspecs
from collab_layer.plugins.check import COMMANDS_HOOK, REGISTERS
from collab_layer.plugins.manager import load
from collab_layer.plugins.specs import Event, Leaving, LinkRequest
from collab_layer.ports.backend import Can
from collab_layer.ports.models import ModelOptions
from collab_layer.testing import ScriptedModel
from collab_layer.types.entity import Entity
from collab_layer.types.scope import Sharing


def test_hook_collab_register_backends_describes_a_store_without_opening_it(site) -> None:
    site.install(
        "shelf",
        """
        async def open_shelf(**settings):
            raise RuntimeError("opened too early")

        @hookimpl
        def collab_register_backends():
            return [BackendSpec("shelf", "a shelf", frozenset({Can.SEARCH}), open_shelf, "collab-shelf")]
        """,
    )
    plugins = load()
    assert plugins.backends["shelf"].can == {Can.SEARCH}
    assert plugins.origin["backend:shelf"] == "shelf"
    with pytest.raises(RuntimeError, match="too early"):
        asyncio.run(plugins.backends["shelf"].open())


def test_hook_collab_register_embedders_brings_an_embedder_that_embeds(site) -> None:
    site.install(
        "ones",
        """
        import numpy as np

        class Ones:
            id, dim = "ones-1", 2

            async def embed(self, texts, /):
                return np.full((len(texts), 2), 0.5 ** 0.5, dtype=np.float32)

        @hookimpl
        def collab_register_embedders():
            return [EmbedderSpec("ones", "all alike", Ones)]
        """,
    )
    embedder = load().embedder("ones")
    assert np.allclose(np.linalg.norm(asyncio.run(embedder.embed(["a", "b"])), axis=1), 1)


def test_an_embedder_that_takes_something_is_named_with_it(site) -> None:
    site.install(
        "wide",
        """
        class Wide:
            def __init__(self, dim):
                self.id, self.dim = f"wide-{dim}", int(dim)

        @hookimpl
        def collab_register_embedders():
            return [EmbedderSpec("wide", "as wide as you say", Wide, takes="DIM")]
        """,
    )
    assert load().embedder("wide:7").id == "wide-7"
    assert load().embedder().id.startswith("hashing")
    for named in ("wide", "wide:", "hashing:7", "narrow", ""):
        with pytest.raises(InputError):
            load().embedder(named)


ECHO = """
class Echo:
    def __init__(self, name, options):
        self.name, self.options = f"echo/{name}", options

    async def complete(self, prompt, reply, /):
        from collab_layer.ports.models import Answered
        from collab_layer.types.asking import Usage

        return Answered(reply(here=True), Usage(model=self.name, input_tokens=2, output_tokens=1))

@hookimpl
def collab_register_models():
    return [ModelSpec("echo", "says it again", Echo)]
"""


def test_hook_collab_register_models_opens_a_model_by_its_own_name(site, sqlite_url) -> None:
    site.install("echo", ECHO)
    opened = load().models["echo"].open("small", ModelOptions(timeout_s=3))
    assert (opened.name, opened.options.timeout_s) == ("echo/small", 3)
    settings = Settings(worker=False, memory=RoleSettings(model="echo:small:latest"))
    with CollabLayer.open(sqlite_url, settings=settings) as layer:
        assert [row.model for row in layer.models(ask=True)] == ["echo/small:latest", None]
        assert [(row.calls, row.input_tokens, row.output_tokens) for row in layer.usage()] == [(1, 2, 1)]


def test_a_model_name_that_no_client_claims_goes_whole_to_the_built_in_one(site, sqlite_url) -> None:
    site.install("echo", ECHO)
    settings = Settings(worker=False, memory=RoleSettings(base_url="http://127.0.0.1:9/v1"))
    with CollabLayer.open(sqlite_url, memory_model="openai:echo:small", settings=settings) as layer:
        assert layer.models()[0].model == "openai:echo:small"


def test_hook_collab_register_domains_adds_a_preset_beside_ours(site) -> None:
    site.install(
        "films",
        """
        @hookimpl
        def collab_register_domains():
            return [DomainSpec("films", "for films", {"weights": {}}, "us")]
        """,
    )
    domains = load().domains
    assert domains["films"].tree == {"weights": {}}
    assert len(domains) > 1


def test_hook_collab_register_linkers_links_in_batches(site) -> None:
    site.install(
        "hash",
        """
        from collab_layer.types.entity import Entity

        def link(requests, names, /):
            return [[Entity("topic", word[1:]) for word in one.text.split() if word[0] == "#"] for one in requests]

        @hookimpl
        def collab_register_linkers():
            return (LinkerSpec("hash", "hash tags", link) for _ in range(1))
        """,
    )
    requests = [LinkRequest(Entity("user", "a"), "see #sso"), LinkRequest(Entity("user", "b"), "nothing")]
    assert load().linkers["hash"].link(requests, {}) == [[Entity("topic", "sso")], []]


def test_hook_collab_register_features_keeps_the_declared_bounds(site) -> None:
    site.install(
        "night",
        """
        @hookimpl
        def collab_register_features():
            return [FeatureSpec("night", "active at night", 0.0, 1.0, lambda neighborhood: neighborhood.peer)]
        """,
    )
    feature = load().features["night"]
    assert (feature.low, feature.high) == (0.0, 1.0)


def test_hook_collab_register_share_filters_may_withhold_or_redact(site) -> None:
    site.install(
        "mask",
        """
        def mask(items, /):
            return [None if "secret" in item.text else item.text.replace("4711", "…") for item in items]

        @hookimpl
        def collab_register_share_filters():
            return [ShareFilterSpec("mask", "numbers out", mask)]
        """,
    )
    a, b = Entity("user", "a"), Entity("user", "b")
    kept = load().share_filters["mask"].filter([Leaving(a, b, "ticket 4711"), Leaving(a, b, "a secret")])
    assert kept == ["ticket …", None]


@pytest.mark.parametrize("trigger", ["eager", "nightly"])
def test_a_provider_is_shown_no_more_than_share_filters_let_go(site, sqlite_url, trigger) -> None:
    site.install(
        "mask",
        """
        def mask(items, /):
            return [None if "secret" in item.text else item.text.replace("4711", "gone") for item in items]

        @hookimpl
        def collab_register_share_filters():
            return [ShareFilterSpec("mask", "numbers out", mask)]
        """,
    )
    model = ScriptedModel(lambda _prompt: {}, name="small")
    settings = Settings(worker=False, trigger=trigger)
    records = Sharing.within_tenant("records")
    with CollabLayer.open(sqlite_url, sharing=records, memory_model=model, settings=settings) as layer:
        for name in "abcd":
            layer.observe(f"agent:{name}", text="Ticket 4711 about the login loop is solved", links=["topic:sso"])
            layer.observe(f"agent:{name}", text="The secret of the login loop is a cookie", links=["topic:sso"])
            layer.drain()
        layer.context("agent:a")
    shown = [prompt.data for prompt in model.prompts]
    assert any("login loop" in data for data in shown)
    assert not any("4711" in data or "secret" in data for data in shown)


def test_hook_collab_register_sinks_is_told_ids_and_counts(site) -> None:
    module = site.install(
        "log",
        """
        TOLD = []

        @hookimpl
        def collab_register_sinks():
            return [SinkSpec("log", "keeps a list", TOLD.append)]
        """,
    )
    event = Event("propagated", "acme", "user:a", {"updates": 3})
    load().sinks["log"].tell(event)
    assert [event] == __import__(module).TOLD


def test_a_sink_that_fails_is_logged_and_stops_nothing(site, sqlite_url, caplog) -> None:
    module = site.install(
        "log",
        """
        TOLD = []

        def trip(event):
            raise ZeroDivisionError("in a stranger's code")

        @hookimpl
        def collab_register_sinks():
            return [SinkSpec("trip", "falls", trip), SinkSpec("log", "keeps a list", TOLD.append)]
        """,
    )
    model = ScriptedModel([{"here": True}], name="small")
    with CollabLayer.open(sqlite_url, memory_model=model, settings=Settings(worker=False)) as layer:
        assert layer.models(ask=True)[0].condition == "ok"
    (event,) = __import__(module).TOLD
    assert (event.kind, event.facts["calls"], event.facts["failed"]) == ("asked", 1, False)
    assert "sink `trip` failed" in caplog.text


def test_hook_collab_register_runners_runs_beside_the_loop(site) -> None:
    site.install(
        "thrice",
        """
        def run(work, /, *, workers):
            return sum(work(lambda: False) for _ in range(3 * workers))

        @hookimpl
        def collab_register_runners():
            return [RunnerSpec("thrice", "three times", run)]
        """,
    )
    runners = load().runners
    assert runners["thrice"].run(lambda should_stop: 5, workers=2) == 30
    assert runners["loop"].run(lambda should_stop: 5, workers=2) == 10


def test_hook_collab_register_commands_adds_a_subcommand(site) -> None:
    site.install(
        "hello",
        """
        @hookimpl
        def collab_register_commands(app):
            @app.command("hello")
            def hello():
                print("hello from a plugin")
        """,
    )
    app = typer.Typer()
    app.command("other")(lambda: None)
    assert load().add_commands(app) == ()
    assert "hello from a plugin" in CliRunner().invoke(app, ["hello"]).output


def test_every_hook_has_a_test_here() -> None:
    hooks = {name for name in vars(hookspecs) if name.startswith("collab_")}
    assert hooks == {*REGISTERS, COMMANDS_HOOK}
    missing = [hook for hook in sorted(hooks) if not any(name.startswith(f"test_hook_{hook}_") for name in globals())]
    assert not missing
