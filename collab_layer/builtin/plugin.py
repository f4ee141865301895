"""Our own parts, registered through the same hooks as anybody else's.

In:   nothing.
Out:  descriptions; pydantic, numpy and a model's client load when a part is first used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from collab_layer.errors import ModelSetupError
from collab_layer.plugins.hookspecs import hookimpl
from collab_layer.plugins.specs import DomainSpec, EmbedderSpec, LinkerSpec, LinkRequest, ModelSpec, RunnerSpec

if TYPE_CHECKING:
    from collab_layer.ports.models import Embedder, LanguageModel, ModelOptions
    from collab_layer.types.entity import Entity


@hookimpl
def collab_register_embedders() -> Iterable[EmbedderSpec]:
    """The hashing embedder, deterministic and without weights, and sentence encoders from a folder."""
    return [
        EmbedderSpec("hashing", "hashed words and letter groups, deterministic, no download", _hashing),
        EmbedderSpec("onnx", "a sentence encoder in a folder: model.onnx and tokenizer.json", _onnx, takes="DIR"),
    ]


@hookimpl
def collab_register_models() -> Iterable[ModelSpec]:
    """The client of every provider that pydantic-ai knows."""
    return [ModelSpec("pydantic-ai", "any provider that pydantic-ai knows, or an OpenAI-compatible server", _model)]


@hookimpl
def collab_register_domains() -> Iterable[DomainSpec]:
    """The rule presets."""
    from collab_layer.builtin.domains import DOMAINS

    return DOMAINS


@hookimpl
def collab_register_linkers() -> Iterable[LinkerSpec]:
    """What texts refer to, in the order in which they run."""
    return [
        LinkerSpec("names", "display names and ids that are known, the longest match first", _names),
        LinkerSpec("topics", "quoted titles, identifiers, proper names and content words of the text", _topics),
    ]


@hookimpl
def collab_register_runners() -> Iterable[RunnerSpec]:
    """The worker loop, and Ray."""
    from collab_layer.builtin import ray_runner
    from collab_layer.builtin.runner import run_loop

    return [
        RunnerSpec("loop", "threads of this process", run_loop),
        RunnerSpec(
            "ray", "processes on Ray, here or on other machines", ray_runner.run, elsewhere=True, bulk=ray_runner.bulk
        ),
    ]


def _names(requests: Sequence[LinkRequest], names: Mapping[str, Entity], /) -> list[list[Entity]]:
    from collab_layer.builtin.linkers import link_names

    return link_names(requests, names)


def _topics(requests: Sequence[LinkRequest], names: Mapping[str, Entity], /) -> list[list[Entity]]:
    from collab_layer.builtin.linkers import link_topics

    return link_topics(requests, names)


def _hashing() -> Embedder:
    from collab_layer.builtin.embedder import HashingEmbedder

    return HashingEmbedder()


def _onnx(folder: str) -> Embedder:
    from collab_layer.builtin.onnx_embedder import OnnxEmbedder

    return OnnxEmbedder(folder)


def _model(name: str, options: ModelOptions) -> LanguageModel:
    try:
        from collab_layer.builtin.model import PydanticAiModel
    except ImportError as error:
        cure = "its client is not installed; run pip install 'collab-layer[llm]'"
        raise ModelSetupError(name, cure) from error
    return PydanticAiModel(name, options)
