"""What a model is asked, and what that cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from collab_layer.types.entity import Value
from collab_layer.types.tokens import estimate_tokens

Role = Literal["memory", "reasoning"]
"""The light model that keeps memory in the background, and the heavy one that only reasons."""

Stage = Literal["synthesize", "rank", "answer", "propagate", "rules", "check"]
"""The stages that may ask a model, and `check`: whether it answers at all. Usage is counted by them."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Our words and other people's words, kept apart.

    Attributes:
        stage: Who asks.
        instructions: Ours alone; sent as the system message. Never holds a foreign word.
        data: The user message; every foreign text in it is quoted and fenced (`stages.fence`).
        max_tokens: The longest reply that is of use, > 0.
        requests: The most requests that may be sent for it, retries included; None leaves that to the
            client's settings. Set by `flows.ask` where the tenant's budget allows fewer.
    """

    stage: Stage
    instructions: str
    data: str
    max_tokens: int
    requests: int | None = None

    def __str__(self) -> str:
        return f"{self.instructions}\n\n{self.data}"

    @property
    def tokens(self) -> int:
        """Estimated tokens of the whole."""
        return estimate_tokens(str(self))


class Usage(Value):
    """What asking a model cost.

    Attributes:
        stage: Who asked; empty as a client gives it.
        model: Provider and model.
        calls: Requests sent, those that failed included.
        input_tokens, output_tokens: As the provider counts them.
        estimated: The provider did not say; counted by our own estimate.
        repaired: Parts of the reply that were put right or left out: unknown ids, duplicates,
            scores that are no number, sentences that nothing supports.
    """

    stage: str = ""
    model: str = ""
    calls: int = Field(default=1, ge=0)
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    estimated: bool = False
    repaired: int = Field(default=0, ge=0)


class Spent(Value):
    """What one stage of a tenant spent on one day (UTC).

    Attributes:
        day: As `2026-05-01`.
        role: Whose model.
        stage: Who asked.
        model: Provider and model.
        calls: Requests sent.
        failed: Times that the model gave nothing usable and the rules stood in.
        input_tokens, output_tokens: In all.
    """

    day: str
    role: Role
    stage: str
    model: str
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int


class RoleHealth(Value):
    """Who answers in a role.

    Attributes:
        role: Whose model.
        model: Provider and model; None where the rules do its work.
        condition: `set`: there is one, and it was not asked; `rules`: there is none; `ok` and
            `down`: it was asked.
        detail: In words.
    """

    role: Role
    model: str | None = None
    condition: Literal["set", "rules", "ok", "down"]
    detail: str = ""


__all__ = ["Prompt", "Role", "RoleHealth", "Spent", "Stage", "Usage"]
