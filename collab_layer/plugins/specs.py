"""What a hook returns: descriptions. Nothing here imports an SDK or opens a connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collab_layer.ports.backend import Can, MemoryBackend
    from collab_layer.ports.models import Embedder, LanguageModel, ModelOptions
    from collab_layer.types.entity import Entity
    from collab_layer.types.graph import Floats, Neighborhood


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """A store a plugin can open.

    Attributes:
        name: As typed on the command line.
        summary: One line for `collab backends`.
        can: The most it can promise; an opened store says what it really does.
        open: Keyword settings in, an opened store out; imports the SDK.
        distribution: What to install.
        settings: Setting name to what it means.
    """

    name: str
    summary: str
    can: frozenset[Can]
    open: Callable[..., Awaitable[MemoryBackend]]
    distribution: str
    settings: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class EmbedderSpec:
    """An embedder by name.

    Attributes:
        name: As typed, `hashing`; with what it takes, `onnx:DIR`.
        summary: One line.
        open: Loads its weights; called with what follows the name if it takes anything.
        takes: What that is, as `DIR`; empty if nothing.
    """

    name: str
    summary: str
    open: Callable[..., Embedder]
    takes: str = ""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A language model client by name; `open` imports its SDK.

    A model is set as `client:model`; what names no registered client is handed whole to the
    built-in one, so `openai:gpt-4o-mini` needs no plugin.
    """

    name: str
    summary: str
    open: Callable[[str, ModelOptions], LanguageModel]


@dataclass(frozen=True, slots=True)
class DomainSpec:
    """A curation preset: a rule tree and what its statistics mean."""

    name: str
    summary: str
    tree: Mapping[str, Any]
    source: str


@dataclass(frozen=True, slots=True)
class LinkRequest:
    """A text to link.

    Attributes:
        owner: Whose.
        text: What it says.
        topics: What the text itself names and the words it used, where the caller has looked for it.
    """

    owner: Entity
    text: str
    topics: tuple[tuple[Entity, str], ...] | None = None


class Linker(Protocol):
    """Batched: texts and known names to links. Pure and deterministic."""

    def __call__(self, requests: Sequence[LinkRequest], names: Mapping[str, Entity], /) -> list[list[Entity]]:
        """One list of links per request; `names` maps folded display names to entities."""
        ...


@dataclass(frozen=True, slots=True)
class LinkerSpec:
    """A linker by name; those registered run one after another, their links are joined."""

    name: str
    summary: str
    link: Linker


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """An extra curation feature with the bounds that the exact prune needs.

    `compute` takes the neighborhood and returns shape (n,) values within [low, high].
    """

    name: str
    summary: str
    low: float
    high: float
    compute: Callable[[Neighborhood], Floats]


@dataclass(frozen=True, slots=True)
class Leaving:
    """Something about to leave an owner: a quote for a reader."""

    owner: Entity
    reader: Entity
    text: str


class ShareFilter(Protocol):
    """Batched veto or redaction: None withholds, a text replaces."""

    def __call__(self, items: Sequence[Leaving], /) -> list[str | None]:
        """One answer per item, in order."""
        ...


@dataclass(frozen=True, slots=True)
class ShareFilterSpec:
    """A share filter by name; all must agree."""

    name: str
    summary: str
    filter: ShareFilter


@dataclass(frozen=True, slots=True)
class Event:
    """What a sink is told: `propagated`, `injected`, `asked` or `consolidated`; ids and counts, never texts."""

    kind: str
    tenant: str
    entity: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """Someone who is told after propagation and injection; its failures are logged only."""

    name: str
    summary: str
    tell: Callable[[Event], None]


Spread = Callable[[Callable[[Any, Any], Any], Any, Sequence[Any]], Iterable[Any]]
"""Calls a function of a module with something shared and each of several parts; the answers in their order."""


@dataclass(frozen=True, slots=True)
class RunnerSpec:
    """Who drives workers, and perhaps bulk work.

    `run(work, *, workers)` returns how many interactions were settled. `work` can be
    pickled and sent elsewhere; called with a function that says whether to stop, it works
    until told to, or until nothing is due, and returns how many interactions it settled.

    Attributes:
        name: As typed after `--on`.
        summary: One line.
        run: Drives workers.
        elsewhere: It may work on other machines, so that a database in a file is refused.
        bulk: `bulk(workers)` is a context manager that gives a `Spread`; None if it does no bulk work.
    """

    name: str
    summary: str
    run: Callable[..., Any]
    elsewhere: bool = False
    bulk: Callable[[int], AbstractContextManager[Spread]] | None = None
