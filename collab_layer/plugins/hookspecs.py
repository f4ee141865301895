"""Every hook, one page. The docstrings are the plugin author's manual.

A hook is synchronous and cheap, is called once while plugins load (when a layer is
opened or the command line starts, never at import), and returns descriptions. The
types are in `collab_layer.plugins.specs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

from collab_layer.plugins.specs import (
    BackendSpec,
    DomainSpec,
    EmbedderSpec,
    FeatureSpec,
    LinkerSpec,
    ModelSpec,
    RunnerSpec,
    ShareFilterSpec,
    SinkSpec,
)

if TYPE_CHECKING:
    import typer

PROJECT = "collab_layer"
"""pluggy project name and entry-point group."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def collab_register_backends() -> Iterable[BackendSpec]:  # type: ignore[empty-body]
    """Describe the stores this plugin can open; the SDK is imported when one is opened."""
    ...


@hookspec
def collab_register_embedders() -> Iterable[EmbedderSpec]:  # type: ignore[empty-body]
    """Describe embedders; weights are loaded when one is first used."""
    ...


@hookspec
def collab_register_models() -> Iterable[ModelSpec]:  # type: ignore[empty-body]
    """Describe language model clients; one method each, see `ports.models`. Set as `client:model`."""
    ...


@hookspec
def collab_register_domains() -> Iterable[DomainSpec]:  # type: ignore[empty-body]
    """Describe curation presets: a rule tree, and where its numbers come from."""
    ...


@hookspec
def collab_register_linkers() -> Iterable[LinkerSpec]:  # type: ignore[empty-body]
    """Describe linkers: texts and known names in, entity links out, in batches."""
    ...


@hookspec
def collab_register_features() -> Iterable[FeatureSpec]:  # type: ignore[empty-body]
    """Describe extra curation features, each with the bounds the exact prune needs."""
    ...


@hookspec
def collab_register_share_filters() -> Iterable[ShareFilterSpec]:  # type: ignore[empty-body]
    """Describe filters that may veto or redact what would leave an owner."""
    ...


@hookspec
def collab_register_sinks() -> Iterable[SinkSpec]:  # type: ignore[empty-body]
    """Describe who is told after propagation and injection: audit, metrics."""
    ...


@hookspec
def collab_register_runners() -> Iterable[RunnerSpec]:  # type: ignore[empty-body]
    """Describe who can drive workers: the built-in loop, another engine."""
    ...


@hookspec
def collab_register_commands(app: typer.Typer) -> None:
    """Add sub-commands to `collab`; `app` is the root typer application."""
    ...
