"""Mem0's ids, payloads and filters to entities and records, and back.

In:   what Mem0 stores or is asked with: plain dicts.
Out:  `Entity`, `MemoryRecord`, native scopes.
Pure: no SDK, no I/O, no clock.

A memory with several ids has one owner: the user, else the agent, else the run, else
the app. The other ids become links. In a group chat Mem0 notes who said each message
(`actor_id`, from the message's `name`): then the speaker is the owner, whoever's chat it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from collab_layer.errors import InputError
from collab_layer.types.entity import MAX_TEXT, Entity, MemoryRecord, MemoryRef
from collab_layer.types.interaction import MAX_LINKS

KINDS: Final = {"user_id": "user", "agent_id": "agent", "run_id": "session", "app_id": "app"}
"""Mem0's id field to the kind of entity, in the order in which an owner is chosen."""
FIELDS: Final = {kind: field for field, kind in KINDS.items()}
RESERVED_AGENT: Final = "collab"
"""The `agent_id` that derived items are written under."""
KEY: Final = "collab_key"
"""Metadata key of a derived item: its idempotency key."""
LINKS: Final = "collab_links"
"""Metadata key for explicit links: entities, as a list or separated by commas."""
ANY: Final = "*"
SPEAKER: Final = "actor_id"
"""Mem0's field for who said a message of a group chat."""

_UNFIT = re.compile(
    r"[\s*/\x00-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]|%(?=[0-9A-Fa-f]{2})"
)
_COMBINED = re.compile(r"[^\x00-\x7f]")


def encode_id(native: str) -> str:
    """Write a native id so that an `Entity` takes it; two ids never become one.

    Characters an entity refuses are percent-encoded, and so is a `%` that would read
    as such a code. An id that Unicode normalisation would change is encoded throughout.
    """
    fit = _UNFIT.sub(_percent, native)
    return fit if unicodedata.normalize("NFC", fit) == fit else _COMBINED.sub(_percent, fit)


def decode_id(text: str) -> str:
    """The native id behind `encode_id`."""
    return unquote(text, errors="surrogatepass")


def _percent(found: re.Match[str]) -> str:
    return quote(found.group(), safe="", errors="surrogatepass")


def entity(field: str, native: object) -> Entity:
    """The entity of an id field, for example `user_id` and `alice`.

    Raises:
        InvalidEntityError: The id is empty or, encoded, has more than 256 characters.
    """
    return Entity(KINDS[field], encode_id(str(native).strip()))


def native_scope(owner: Entity) -> dict[str, str] | None:
    """The id field and native id of an owner; None for kinds that Mem0 does not have.

    A literal `*` is None too: stores would read it as everybody.
    """
    field, native = FIELDS.get(owner.kind), decode_id(owner.id)
    return None if field is None or native == ANY else {field: native}


def native_scopes(owner: Entity) -> list[dict[str, str]]:
    """Where an owner's memories lie: under its own id, and where it spoke in others' chats."""
    own = native_scope(owner)
    spoken = [] if own is None or owner.kind not in ("user", "agent") else [{SPEAKER: decode_id(owner.id)}]
    return [] if own is None else [own, *spoken]


def owner_of(payload: Mapping[str, Any]) -> Entity | None:
    """Whose memory a payload is; None if it names nobody, or nobody we can name."""
    speaker = payload.get(SPEAKER)
    if speaker not in (None, ""):
        return _entity_or_none("agent_id" if payload.get("role") == "assistant" else "user_id", speaker)
    for field in KINDS:
        native = payload.get(field)
        if native not in (None, ""):
            return _entity_or_none(field, native)
    return None


def of_the_chat(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """A payload of which nobody knows who said it: at most the run's, never a person's."""
    if payload.get(SPEAKER) not in (None, ""):
        return payload
    return {field: value for field, value in payload.items() if field not in ("user_id", "agent_id")}


def speakers(messages: object) -> frozenset[str]:
    """The names in a list of messages, as the caller gave them."""
    said = cast("list[object]", messages) if isinstance(messages, list) else []
    named = (cast("Mapping[str, object]", one).get("name") for one in said if isinstance(one, Mapping))
    return frozenset(str(name) for name in named if name)


def said_by(owner: Entity, scope: str, role: str | None, name: str | None) -> bool:
    """Whether a message that Mem0 keeps is an owner's: it spoke, or else it is its conversation.

    Args:
        owner: Whose words are looked for.
        scope: Of the conversation, as Mem0 writes it: `agent_id=bot&user_id=ann`.
        role: Of the message.
        name: Of who spoke, if the message has one.
    """
    pairs = (part.partition("=") for part in scope.split("&"))
    ids = {field: _unescaped(value) for field, _, value in pairs if field in KINDS and value}
    if owner.kind == "session":
        return _entity_or_none("run_id", ids.get("run_id", "")) == owner
    spoke = {**ids, SPEAKER: name, "role": role}
    if not name and role == "assistant":
        spoke[SPEAKER] = ids.get("agent_id")
    return owner in (owner_of(ids), owner_of(spoke))


def _unescaped(value: str) -> str:
    """A value of a scope as it was before Mem0 wrote it there."""
    return value.replace("%3D", "=").replace("%26", "&").replace("%25", "%")


def is_derived(payload: Mapping[str, Any]) -> bool:
    """Whether the layer wrote it: the reserved scope, or our key in its metadata."""
    return KEY in payload or (payload.get("agent_id") == RESERVED_AGENT and not payload.get("user_id"))


def links_of(payload: Mapping[str, Any], owner: Entity) -> tuple[Entity, ...]:
    """The other ids of a payload, then the entities in its `collab_links`; at most 64."""
    ids = (_entity_or_none(field, payload[field]) for field in KINDS if payload.get(field) not in (None, ""))
    found = [one for one in (*ids, *_explicit(payload.get(LINKS))) if one is not None and one != owner]
    return tuple(dict.fromkeys(found))[:MAX_LINKS]


def _explicit(value: object) -> Iterator[Entity | None]:
    given = value.split(",") if isinstance(value, str) else value
    if isinstance(given, (list, tuple)):
        for text in cast("list[object]", given):
            try:
                yield Entity.parse(str(text).strip())
            except InputError:
                continue


def _entity_or_none(field: str, native: object) -> Entity | None:
    try:
        return entity(field, native)
    except InputError:
        return None


def version_of(payload: Mapping[str, Any]) -> str:
    """What changes whenever the content does: the text's hash and the time of the last write."""
    return f"{payload.get('hash') or ''}@{payload.get('updated_at') or payload.get('created_at') or ''}"


def record(backend: str, native_id: str, payload: Mapping[str, Any], score: float | None = None) -> MemoryRecord | None:
    """A stored payload as a record.

    Returns:
        None for what is no owner's memory: derived items, no text, no usable owner.
    """
    owner, text = owner_of(payload), payload.get("data")
    if owner is None or not isinstance(text, str) or not text.strip() or is_derived(payload):
        return None
    return MemoryRecord(
        ref=MemoryRef(backend=backend, id=native_id, version=version_of(payload)),
        owner=owner,
        text=text.replace("\x00", " ")[:MAX_TEXT],
        at=moment(payload.get("updated_at")) or moment(payload.get("created_at")),
        valid_to=_end(payload.get("expiration_date")),
        links=links_of(payload, owner),
        score=score,
    )


def payload_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as Mem0 answers it, in the flat form in which it is stored."""
    metadata = item.get("metadata")
    flat: dict[str, Any] = dict(cast("Mapping[str, Any]", metadata)) if isinstance(metadata, Mapping) else {}
    flat.update({key: value for key, value in item.items() if key not in ("metadata", "memory", "score", "id")})
    return {**flat, "data": item.get("memory")}


def moment(value: object) -> datetime | None:
    """Mem0's ISO 8601 text as an aware UTC time; a text without a zone is UTC."""
    if not isinstance(value, str):
        return None
    try:
        read = datetime.fromisoformat(value)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _end(value: object) -> datetime | None:
    """A memory holds through its expiration date."""
    try:
        return datetime.combine(date.fromisoformat(str(value)) + timedelta(days=1), time(), UTC)
    except (ValueError, OverflowError):
        return None


__all__ = [
    "ANY",
    "FIELDS",
    "KEY",
    "KINDS",
    "LINKS",
    "RESERVED_AGENT",
    "SPEAKER",
    "decode_id",
    "encode_id",
    "entity",
    "is_derived",
    "links_of",
    "moment",
    "native_scope",
    "native_scopes",
    "owner_of",
    "of_the_chat",
    "payload_of",
    "record",
    "said_by",
    "speakers",
    "version_of",
]
