"""Texts in, vectors out; prompt in, reply out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from pydantic import BaseModel

    from collab_layer.types.asking import Prompt, Usage
    from collab_layer.types.graph import Vectors

Reply = TypeVar("Reply", bound="BaseModel")


@runtime_checkable
class Embedder(Protocol):
    """Texts to vectors. `id` and `dim` are stored with every vector."""

    @property
    def id(self) -> str:
        """Name and version; vectors of different ids are never compared."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """Unit float32 vectors, shape (len(texts), dim); zeros for a text without content."""
        ...


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is reached.

    Attributes:
        base_url: Of an OpenAI-compatible server; the provider's own if None.
        api_key: None takes the provider's own environment variable.
        timeout_s: For one `complete` in all, retries included, > 0.
        retries: Further requests after a reply that does not fit or an answer of "try again", >= 0.
    """

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 30.0
    retries: int = 2


@dataclass(frozen=True, slots=True)
class Answered(Generic[Reply]):
    """A validated reply and what it cost."""

    value: Reply
    usage: Usage


@runtime_checkable
class LanguageModel(Protocol):
    """One method: a prompt and a pydantic type to a validated object."""

    @property
    def name(self) -> str:
        """Provider and model, as printed and stored with what it made."""
        ...

    async def complete(self, prompt: Prompt, reply: type[Reply], /) -> Answered[Reply]:
        """Ask once; what a retry costs is counted too.

        Args:
            prompt: `instructions` go where the provider puts a system message, `data` is the user's.
            reply: The type of the answer; its JSON schema may say more than it validates.

        Raises:
            ModelError: The model cannot be reached, or gives no reply of that type within
                `prompt.max_tokens`; it carries what was spent.
        """
        ...


@runtime_checkable
class Closes(Protocol):
    """The extra call of a client that holds connections; the layer makes it when it is closed."""

    async def aclose(self) -> None:
        """Close what the running event loop opened; may be called again, and asked again afterwards."""
        ...
