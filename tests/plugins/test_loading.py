"""Plugins load each on its own; what does not fit is left out, by name and with the reason."""

from __future__ import annotations

import pytest
import typer

from collab_layer.errors import PluginError
from collab_layer.plugins.manager import Plugins, load

GOOD = """
@hookimpl
def collab_register_backends():
    return [BackendSpec("good", "a good store", frozenset(), open_store, "collab-good")]

async def open_store(**settings): ...
"""


def reason(plugins: Plugins, name: str) -> str:
    (failure,) = [failure for failure in plugins.failures if failure.plugin == name]
    assert isinstance(failure, PluginError)
    assert name not in plugins.loaded
    return failure.why


def test_built_ins_register_through_the_same_hooks() -> None:
    plugins = load()
    assert plugins.loaded[0] == "builtin"
    assert "hashing" in plugins.embedders
    assert "loop" in plugins.runners
    assert "overlap" in plugins.domains
    assert plugins.linkers
    assert not plugins.failures


def test_a_plugin_whose_import_fails_is_named_and_the_rest_goes_on(site) -> None:
    site.install("broken", "import a_library_nobody_has\n")
    site.install("good", GOOD)
    plugins = load()
    assert "a_library_nobody_has" in reason(plugins, "broken")
    assert "good" in plugins.backends


def test_a_plugin_that_exits_at_import_does_not_take_us_with_it(site) -> None:
    site.install("quitter", "raise SystemExit(3)\n")
    assert "SystemExit" in reason(load(), "quitter")


def test_a_hook_that_raises_leaves_its_plugin_out_whole(site) -> None:
    site.install(
        "half",
        GOOD + "\n@hookimpl\ndef collab_register_sinks():\n    raise KeyError('no sink here')\n",
    )
    plugins = load()
    assert "KeyError" in reason(plugins, "half")
    assert "good" not in plugins.backends


def test_a_generator_that_raises_halfway_is_caught_as_well(site) -> None:
    site.install("lazy", "@hookimpl\ndef collab_register_sinks():\n    yield SinkSpec('a', 'b', print)\n    1 / 0\n")
    plugins = load()
    assert "ZeroDivisionError" in reason(plugins, "lazy")
    assert not plugins.sinks


def test_a_misspelt_hook_is_named_with_the_nearest_one(site) -> None:
    site.install("typo", "@hookimpl\ndef collab_register_backend():\n    return []\n")
    why = reason(load(), "typo")
    assert "`collab_register_backend` is no hook" in why
    assert "`collab_register_backends`" in why


def test_a_misspelt_hook_without_the_marker_is_named_too(site) -> None:
    site.install("typo2", "def collab_registers_sinks():\n    return []\n")
    assert "`collab_registers_sinks` is no hook" in reason(load(), "typo2")


def test_a_hook_without_the_marker_would_never_be_called_and_is_named(site) -> None:
    site.install("bare", "def collab_register_sinks():\n    return []\n")
    assert "lacks `@hookimpl`" in reason(load(), "bare")


def test_an_argument_the_hook_does_not_have_is_named(site) -> None:
    site.install("greedy", "@hookimpl\ndef collab_register_sinks(config):\n    return []\n")
    assert "config" in reason(load(), "greedy")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return 7", "returned int"),
        ("return 'abc'", "returned str"),
        ("return ['a']", "item 0 of `collab_register_sinks` is str"),
        ("return [SinkSpec('', 's', print)]", "has no name"),
        ("return [SinkSpec('s', 's', None)]", "`tell` of `s`"),
    ],
)
def test_what_is_no_description_is_refused_with_its_place(site, body: str, said: str) -> None:
    site.install("odd", f"@hookimpl\ndef collab_register_sinks():\n    {body}\n")
    assert said in reason(load(), "odd")


def test_a_feature_without_finite_bounds_is_refused(site) -> None:
    site.install(
        "wild",
        "@hookimpl\ndef collab_register_features():\n    return [FeatureSpec('w', 's', 0, float('inf'), abs)]\n",
    )
    assert "bounds" in reason(load(), "wild")


def test_a_store_that_promises_an_unknown_ability_is_refused(site) -> None:
    site.install("boast", GOOD.replace("frozenset()", "frozenset({'telepathy'})"))
    assert "`telepathy`" in reason(load(), "boast")


def test_two_plugins_that_register_one_name_are_both_named(site) -> None:
    site.install("alpha", GOOD)
    site.install("beta", GOOD)
    plugins = load()
    why = reason(plugins, "beta")
    assert "`good`" in why
    assert "`alpha`" in why
    assert plugins.origin["backend:good"] == "alpha"


def test_one_plugin_that_registers_a_name_twice_is_refused(site) -> None:
    site.install("twice", "@hookimpl\ndef collab_register_sinks():\n    return [SinkSpec('a', 's', print)] * 2\n")
    assert "already registered by plugin `twice`" in reason(load(), "twice")


def test_two_distributions_with_a_plugin_of_one_name_are_both_named(site) -> None:
    site.install("same", GOOD, distribution="first")
    site.install("same", "", distribution="second")
    plugins = load()
    (failure,) = plugins.failures
    assert "`first`" in failure.why
    assert "`second`" in failure.why
    assert "good" in plugins.backends


def test_nobody_can_take_the_place_of_our_own_parts(site) -> None:
    site.install("builtin", GOOD, distribution="aaa")
    plugins = load()
    assert [failure.plugin for failure in plugins.failures] == ["builtin"]
    assert "hashing" in plugins.embedders
    assert "good" not in plugins.backends


def test_a_disabled_plugin_is_not_even_imported(site) -> None:
    site.install("broken", "raise RuntimeError('imported')\n")
    plugins = load(disabled=("broken",))
    assert not plugins.failures
    assert "broken" not in plugins.loaded


def test_a_command_hook_that_raises_is_named_and_the_others_are_added(site) -> None:
    site.install("bad", "@hookimpl\ndef collab_register_commands(app):\n    raise OSError('no screen')\n")
    site.install(
        "fine",
        "@hookimpl\ndef collab_register_commands(app):\n    app.command('fine')(lambda: None)\n",
    )
    app = typer.Typer()
    (failure,) = load().add_commands(app)
    assert failure.plugin == "bad"
    assert [command.name for command in app.registered_commands] == ["fine"]


def test_the_same_installation_loads_in_the_same_order(site) -> None:
    for name in ("gamma", "alpha", "beta"):
        site.install(name, "")
    assert load().loaded == load().loaded
    assert [name for name in load().loaded if name in {"alpha", "beta", "gamma"}] == ["alpha", "beta", "gamma"]
