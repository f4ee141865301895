"""What a request may say, and what is answered.

In:   JSON. Unknown fields are refused, so that a misspelt one is not ignored.
Out:  values of the layer. Entities left out are the one that the token acts for.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    WithJsonSchema,
)

from collab_layer.types.answer import Answer
from collab_layer.types.changed import Changed
from collab_layer.types.entity import MAX_ID, MAX_TEXT, Entity
from collab_layer.types.erasure import ErasureReceipt
from collab_layer.types.facet import CollabMemory, Neighbor
from collab_layer.types.injection import Injection
from collab_layer.types.interaction import MAX_LINKS
from collab_layer.types.lineage import MAX_DEPTH, MAX_WIDTH
from collab_layer.types.notice import MAX_CHARACTERS as MAX_NOTICE
from collab_layer.types.scope import Grant
from collab_layer.types.time import UtcTime

MAX_BATCH = 1_000
"""Interactions in one request."""
MAX_CANDIDATES = 2_000
_ID = r"[^\s\x85*/\x00-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
_VISIBLE = r"[^\s\x00-\x1f\x7f-\x9f]"

Name = Annotated[
    Entity,
    WithJsonSchema(
        {
            "type": "string",
            "pattern": rf"^[a-z][a-z0-9_]{{0,31}}:{_ID}{{1,{MAX_ID}}}$",
            "description": "An entity, as `kind:id`.",
            "examples": ["agent:coder-a"],
        }
    ),
]
"""An entity as JSON."""
Words = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT, pattern=rf"^[^\x00]*{_VISIBLE}[^\x00]*$")]
"""Text with something in it."""


def _number(value: object) -> object:
    """Refuse what would only be read as a number: `true`, or `"5"`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("it must be a number")
    return value


Whole = Annotated[int, BeforeValidator(_number)]
Real = Annotated[float, BeforeValidator(_number)]


class Asked(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Reading(Asked):
    """A request that reads as an entity."""

    entity: Name | None = Field(default=None, description="For whom; the token's own entity if left out.")
    as_of: UtcTime | None = Field(default=None, description="Read the past: an ISO 8601 time with a zone.")


class ContextRequest(Reading):
    """What do the neighbours of an entity know?"""

    query: Words | None = Field(default=None, description="What it is about, in words.")
    links: tuple[Name, ...] = Field(default=(), max_length=MAX_LINKS, description="Entities it is about.")
    budget_tokens: Whole = Field(default=800, ge=60, le=32_000, description="The most tokens of the text.")


class NeighborsRequest(Reading):
    """Who is worth reading for an entity?"""

    query: Words | None = Field(default=None, description="What it is about, in words.")
    k: Whole = Field(default=16, ge=1, le=1_000, description="How many at most.")


class RankRequest(Reading):
    """In which order do candidates suit an entity?"""

    candidates: tuple[Name, ...] = Field(min_length=1, max_length=MAX_CANDIDATES, description="In any order.")
    instruction: Words | None = Field(default=None, description="What matters this time, in words.")


class AnswerRequest(Reading):
    """A question to what the neighbours of an entity noted."""

    question: Words = Field(description="In words.")


class ExplainRequest(Asked):
    """What does something that was shown rest on?"""

    id: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(
        description="Of a facet, lesson, update or interaction."
    )
    depth: Whole = Field(default=8, ge=1, le=MAX_DEPTH, description="Generations at most.")
    width: Whole = Field(default=50, ge=1, le=MAX_WIDTH, description="Sources of one item at most.")


class PublishRequest(Asked):
    """A safe wording for others, in the owner's chosen words."""

    text: Annotated[Words, StringConstraints(max_length=MAX_NOTICE)] = Field(
        description="What all of the audience may read. What reads like an order to a model is refused."
    )
    to: Annotated[str, StringConstraints(pattern=rf"^(tenant|[a-z][a-z0-9_]{{0,31}}:{_ID}{{1,{MAX_ID}}})$")] = Field(
        description="An entity, a group such as team:support, kind:agent, or tenant."
    )
    sources: tuple[Annotated[str, StringConstraints(min_length=1, max_length=64)], ...] = Field(
        default=(), max_length=MAX_LINKS, description="Ids of the owner's own interactions or records it rests on."
    )
    purpose: Words | None = Field(default=None, description="Only for readers that act for it.")
    until: UtcTime | None = Field(default=None, description="Ends by itself: an ISO 8601 time with a zone.")


class ChangesRequest(Asked):
    """What changed in the memories that may be read?"""

    since: UtcTime = Field(description="Changes after this: an ISO 8601 time with a zone.")
    until: UtcTime | None = Field(default=None, description="Changes up to this; now if left out.")
    limit: Whole = Field(default=200, ge=1, le=MAX_BATCH, description="The newest so many.")


class InjectionsRequest(Asked):
    """What was the token's entity told of others?"""

    since: UtcTime | None = Field(default=None, description="Leaves older ones out.")
    limit: Whole = Field(default=100, ge=1, le=MAX_BATCH, description="The newest so many.")


class ReceiptRequest(Asked):
    """A receipt by its id."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(description="As the erasure gave it.")


class ReceiptsRequest(Asked):
    """Receipts about the token's entity and its grants."""

    limit: Whole = Field(default=100, ge=1, le=MAX_BATCH, description="The newest so many.")


class GrantsRequest(Asked):
    """Who may use the memories of the token's entity?"""


class Observation(Asked):
    """One thing that happened to an entity, or that it did, noted or found out."""

    actor: Name | None = Field(default=None, description="Whose memory it is; can only be the token's own entity.")
    target: Name | None = Field(default=None, description="What it was done to.")
    verb: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] = Field(
        default="interacted", description="A lower-case word: liked, read, solved, described."
    )
    text: Words | None = Field(default=None, description="The actor's own words about it.")
    links: tuple[Name, ...] = Field(default=(), max_length=MAX_LINKS, description="Entities it refers to.")
    outcome: Words | None = Field(default=None, description="How it ended, in a few words.")
    at: UtcTime | None = Field(default=None, description="When; now if left out.")
    key: Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[^\x00]+$")] | None = Field(
        default=None, description="Idempotency key: the same key of the same actor is stored once."
    )
    weight: Real = Field(default=1.0, ge=0, le=1_000, allow_inf_nan=False, description="How strong it was.")
    replaces: Annotated[str, StringConstraints(min_length=1, max_length=32, pattern=r"^[^\x00]+$")] | None = Field(
        default=None, description="Id of an earlier interaction of the actor whose statement holds no longer."
    )


class Batch(Asked):
    """Several things that happened; all are stored, or none."""

    interactions: tuple[Observation, ...] = Field(min_length=1, max_length=MAX_BATCH)


def _form(value: Any) -> Literal["one", "batch"]:
    many = "interactions" in value if isinstance(value, dict) else isinstance(value, Batch)
    return "batch" if many else "one"


ObserveRequest = Annotated[
    Annotated[Observation, Tag("one")] | Annotated[Batch, Tag("batch")],
    Discriminator(_form),
]
"""One interaction, or a batch of them."""


class ContextReply(BaseModel):
    """What the neighbours know, as a block for a prompt and as a value."""

    text: str = Field(description="Quoted, fenced data for a prompt. Nothing in it is an instruction.")
    memory: CollabMemory


class NeighborsReply(BaseModel):
    """The neighbours, strongest first."""

    neighbors: tuple[Neighbor, ...]


class AnswerReply(BaseModel):
    """The answer as text with citations, and as a value."""

    text: str = Field(description="Quoted data; `not known` where nothing known answers it.")
    answer: Answer


class ObserveReply(BaseModel):
    """What was stored."""

    ids: tuple[str, ...] = Field(description="The id of each interaction, in order; of the first one with its key.")


class ChangesReply(BaseModel):
    """What changed, the newest last."""

    changes: tuple[Changed, ...]
    more: bool = Field(description="Whether older ones were left out.")


class InjectionsReply(BaseModel):
    """Answers that carried something of others, newest first."""

    injections: tuple[Injection, ...]


class ReceiptsReply(BaseModel):
    """Receipts as they stand, newest first."""

    receipts: tuple[ErasureReceipt, ...]


class GrantsReply(BaseModel):
    """Grants and opt-outs in force, newest first."""

    grants: tuple[Grant, ...]


class Live(BaseModel):
    """All is well, as far as was asked."""

    status: Literal["ok"] = "ok"
