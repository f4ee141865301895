"""Letta's agents, blocks and passages to entities and records, and back.

In:   what the REST API answers: plain dicts.
Out:  `Entity`, `MemoryRecord`, tags.
Pure: no SDK, no I/O, no clock.

An agent belongs to the entity that its tag `entity:user:alice` names, else to
`agent:<its id>`. Letta does not say from whose words a block or a passage was made: an agent
that several people use is nobody's of them, and only what each said itself, in messages with
the id of its identity, is its memory. What several agents have in common (a block, an archive) belongs to the
oldest of them; the entities of the others become links. A shared block is a thing as well, so
that those who share it are neighbours of one another.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, cast

from collab_layer.errors import InputError
from collab_layer.types.entity import MAX_TEXT, Entity, MemoryRecord, MemoryRef
from collab_layer.types.interaction import MAX_LINKS

ENTITY: Final = "entity:"
"""How a tag begins that names the entity of an agent."""
RESERVED: Final = "collab_"
"""Labels that begin so are the layer's own."""
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_ID = re.compile(rf"(agent|archive|block|identity|message|passage|tool)-{_UUID}")
PERSON: Final = "user"
"""Kind of those who speak."""
ORGANISATION: Final = "org"
"""Type of an identity that is no speaker."""
Json = dict[str, Any]


def is_id(text: str, kind: str) -> bool:
    """Whether a text is an id of that kind; others are refused by the server, or mean another route."""
    found = _ID.fullmatch(text)
    return found is not None and found[1] == kind


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as far as we need it.

    Attributes:
        id: Letta's id.
        made: When it was made; with the id it says which of two is older.
        entity: Whose memories it holds.
        also: Entities that further tags of it name.
        tags: All its tags.
        people: Who speaks with it, by the id of the identity; None where a key names nobody we can name.
        blocks: Its blocks, as the API gives them; empty where they were not asked for.
        message: Id of the message that holds its compiled prompt, if it has one.
    """

    id: str
    made: str
    entity: Entity
    also: tuple[Entity, ...] = ()
    tags: frozenset[str] = frozenset()
    people: Mapping[str, Entity | None] = field(default_factory=dict[str, Entity | None])
    blocks: tuple[Mapping[str, Any], ...] = ()
    message: str | None = None

    @property
    def is_shared(self) -> bool:
        """Whether several people use it, so that nothing it notes is known to be of one of them."""
        return len(self._users) > 1

    @property
    def _users(self) -> frozenset[str]:
        """Who speaks with it: by its tags, and by identities; of one whose key names nobody the id."""
        tagged = (str(one) for one in map(entity_of_tag, self.tags) if one is not None and one.kind == PERSON)
        return frozenset(tagged) | {str(whose or id_) for id_, whose in self.people.items()}

    def others(self, person: Entity) -> list[str]:
        """Who else speaks with it, if a person is to be its only one; another's tag alone is no speaker."""
        spoken = {str(whose or id_) for id_, whose in self.people.items()}
        return sorted((self._users if self.is_shared else spoken) - {str(person)})

    @property
    def age(self) -> tuple[str, str]:
        """Sorts the oldest first."""
        return self.made, self.id


def agent(row: Mapping[str, Any]) -> Agent:
    """An agent as the API gives it."""
    tags = [str(tag) for tag in row.get("tags") or ()]
    named = sorted(one for one in map(entity_of_tag, tags) if one is not None)
    messages = row.get("message_ids") or (None,)
    people = {str(one["id"]): speaker(one) for one in row.get("identities") or () if is_person(one)}
    found = Agent(
        id=str(row["id"]),
        made=str(row.get("created_at") or ""),
        entity=Entity("agent", str(row["id"])),
        tags=frozenset(tags),
        people=people,
        blocks=tuple(row.get("blocks") or ()),
        message=messages[0],
    )
    if found.is_shared:
        named = [one for one in named if one.kind != PERSON]
    return replace(found, entity=named[0], also=tuple(named[1:])) if named else found


def is_person(identity: Mapping[str, Any]) -> bool:
    """Whether an identity may be somebody who speaks."""
    return identity.get("identity_type") != ORGANISATION


def speaker(identity: Mapping[str, Any]) -> Entity | None:
    """Whom an identity stands for: `user:` and its key; None if that cannot be an entity."""
    key = str(identity.get("identifier_key") or "")
    return entity_or_none(f"{PERSON}:{key}") if is_person(identity) and key else None


def tag_of(entity: Entity) -> str:
    """The tag that names an entity."""
    return f"{ENTITY}{entity}"


def entity_of_tag(tag: str) -> Entity | None:
    """The entity a tag names, if it is such a tag."""
    return entity_or_none(tag.removeprefix(ENTITY)) if tag.startswith(ENTITY) else None


def entity_or_none(text: str) -> Entity | None:
    """An entity, if the text can be one."""
    try:
        return Entity.parse(text)
    except InputError:
        return None


def own_agent(owner: Entity) -> str | None:
    """The agent that an owner without a tag is: `agent:agent-…`."""
    return owner.id if owner.kind == "agent" and is_id(owner.id, "agent") else None


def is_ours(label: object) -> bool:
    """Whether a label is the layer's own."""
    return str(label or "").startswith(RESERVED)


def sha(text: str) -> str:
    """SHA-256 of a text, in hex: what changes whenever the text does; Letta shows no version."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def holders(agents: Iterable[Agent]) -> tuple[Entity, tuple[Entity, ...]] | None:
    """Whose a shared thing is, and who else has it; None if no agent has it.

    It is the oldest agent's, before all one that several people use.
    """
    oldest = sorted(agents, key=lambda one: (not one.is_shared, one.age))
    if not oldest:
        return None
    others = dict.fromkeys(entity for one in oldest for entity in (one.entity, *one.also))
    others.pop(oldest[0].entity)
    return oldest[0].entity, tuple(others)


def shares(agents: Iterable[Agent]) -> dict[Entity, tuple[Entity, ...]]:
    """Blocks that agents of several entities have in common, as things, and whose they are."""
    having: dict[tuple[str, str], dict[Entity, None]] = {}
    for one in sorted(agents, key=lambda one: one.age):
        for row in one.blocks:
            if not is_ours(row.get("label")):
                having.setdefault((str(row["id"]), str(row.get("label"))), {})[one.entity] = None
    return {_thing(*block): tuple(entities) for block, entities in having.items() if len(entities) > 1}


def _thing(block: str, label: str) -> Entity:
    """A shared block as an entity: its label, and the end of its id."""
    plain = "".join(char if char.isalnum() or char in "_-" else "-" for char in label)[:64]
    return Entity("block", f"{plain}.{block[-12:]}")


def block_record(backend: str, row: Mapping[str, Any], agents: Iterable[Agent]) -> MemoryRecord | None:
    """A block as a memory; None for our own, for blank ones, and for those without an agent."""
    held, text = holders(agents), row.get("value")
    if held is None or is_ours(row.get("label")):
        return None
    return _record(backend, str(row["id"]), held, text, None, ())


def passage_record(
    backend: str, row: Mapping[str, Any], agents: Sequence[Agent], *, score: float | None = None
) -> MemoryRecord | None:
    """An archived passage as a memory; its tags that read as entities become links."""
    held, text = holders(agents), row.get("text", row.get("content"))
    if held is None:
        return None
    links = (entity_or_none(str(tag).removeprefix(ENTITY)) for tag in row.get("tags") or ())
    at = moment(row.get("created_at") or row.get("timestamp"))
    ref = passage_id(str(row["archive_id"]), str(row["id"]))
    return _record(backend, ref, held, text, at, [one for one in links if one is not None], score)


def _record(
    backend: str,
    native: str,
    held: tuple[Entity, tuple[Entity, ...]],
    text: object,
    at: datetime | None,
    links: Sequence[Entity],
    score: float | None = None,
) -> MemoryRecord | None:
    owner, others = held
    if not isinstance(text, str) or not text.strip():
        return None
    return MemoryRecord(
        ref=MemoryRef(backend=backend, id=native, version=sha(text)[:32]),
        owner=owner,
        text=text.replace("\x00", " ")[:MAX_TEXT],
        at=at,
        links=tuple(dict.fromkeys(one for one in (*links, *others) if one != owner))[:MAX_LINKS],
        score=score,
    )


def message_record(backend: str, row: Mapping[str, Any], whose: Entity) -> MemoryRecord | None:
    """What a person said to an agent, as that person's memory; None for what is no words of a person."""
    if row.get("message_type") != "user_message":
        return None
    return _record(backend, str(row["id"]), (whose, ()), said(row.get("content")), moment(row.get("date")), ())


def said(content: object) -> str:
    """The words of a message, which come as one text or in parts."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in cast("list[Json]", content))
    return str(content or "")


def passage_id(archive: str, passage: str) -> str:
    """A passage is found through its archive only, so that its reference names both."""
    return f"{archive}/{passage}"


def split_passage(native: str) -> tuple[str, str] | None:
    """Archive and passage of a reference; None if it is no such reference."""
    archive, _, passage = native.partition("/")
    return (archive, passage) if is_id(archive, "archive") and is_id(passage, "passage") else None


def moment(value: object) -> datetime | None:
    """Letta's ISO 8601 text as an aware UTC time; a text without a zone is UTC."""
    try:
        read = datetime.fromisoformat(str(value))
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def words(text: str) -> frozenset[str]:
    """The first five letters of each word: enough to compare a query with a few blocks."""
    folded = "".join(char if char.isalnum() else " " for char in text.casefold())
    return frozenset(word[:5] for word in folded.split())


def metadata(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of a block."""
    given = row.get("metadata")
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}


__all__ = [
    "ENTITY",
    "RESERVED",
    "Agent",
    "agent",
    "block_record",
    "entity_of_tag",
    "entity_or_none",
    "is_person",
    "holders",
    "is_id",
    "is_ours",
    "message_record",
    "metadata",
    "moment",
    "own_agent",
    "passage_id",
    "passage_record",
    "said",
    "sha",
    "shares",
    "speaker",
    "split_passage",
    "tag_of",
    "words",
]
