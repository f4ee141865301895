"""What the memory model would tell of some events: asked at most once, outside of any transaction.

load:   one snapshot: is there reason to ask, and what may be shown to whom;
ask:    `stages.asked.updates`;
save:   nothing; `flows.keep` applies the plan, if what it rests on still holds.

`eager` asks about the newest events of the batch, `recurrence` about the records of one matter
once enough of them came up that no model has read, `nightly` never. Where nobody else may read
the actor, nobody is served by asking.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from collab_layer.flows import recall
from collab_layer.flows.ask import ask
from collab_layer.flows.pending import Loaded
from collab_layer.flows.plan import Plan, Scene, extract, may_be_told, scene
from collab_layer.flows.tools import Tools
from collab_layer.graph.derived import Item, item_id
from collab_layer.plugins.specs import Leaving
from collab_layer.stages import propagate
from collab_layer.stages.asked import updates
from collab_layer.stages.asked.telling import Memory, Noted, Receiver, Written
from collab_layer.stages.asked.updates import UpdateQuestion
from collab_layer.types.entity import Entity
from collab_layer.types.facet import FacetKind
from collab_layer.types.scope import Level
from collab_layer.types.time import DAY

MAX_LINKS = 16


@dataclass(frozen=True, slots=True)
class Asking:
    """A question, and what its answer becomes items with.

    Attributes:
        cards: Records of the one matter that it is about; empty where a batch is asked about.
        rest: What the rules tell of the events that it is not about.
        whole: What they tell of all.
        names: Of all receivers and principals.
    """

    question: UpdateQuestion
    cards: tuple[int, ...]
    rest: tuple[Item, ...]
    whole: tuple[Item, ...]
    names: Mapping[int, str]
    delta: float
    salt: str
    rules: str
    policy: int
    now: int


def asks(tools: Tools) -> bool:
    """Whether a model is ever asked about new events."""
    return "memory" in tools.models and tools.trigger != "nightly"


def may_ask(tools: Tools, loaded: Loaded) -> bool:
    """Whether a model could be asked about the claim; cheap, and not yet whether it will be."""
    if not asks(tools) or not may_be_told(loaded):
        return False
    telling = [event for event in loaded.news if event.quarantine is None]
    return any(event.words for event in telling) if tools.trigger == "recurrence" else bool(telling)


def prepare(tools: Tools, loaded: Loaded) -> Asking | Plan:
    """A question about the claim, or what the rules tell where there is no reason to ask."""
    question: UpdateQuestion | None = None
    noted: list[Noted] = []
    receivers: list[Receiver] = []
    with scene(tools, loaded) as around:
        events = recall.recurring(tools, around) if tools.trigger == "recurrence" else recall.newest(around)
        if events is not None:
            receivers = recall.receivers(tools, around, events)
    if events is not None:
        noted, receivers = _let_go(tools, around, events.noted, receivers)
        question = updates.ask(noted, receivers, nonce=secrets.token_hex(8), fanout=propagate.FANOUT)
    whole = tuple(extract(tools, around))
    if events is None or question is None:
        return Plan(whole, around.policy)
    about = [one.source for one in noted]
    named = {one.id for one in receivers} | {one.principal for one in noted}
    named |= {whose for one in receivers for old in one.old for whose in old.principals}
    return Asking(
        question=question,
        cards=events.cards,
        rest=tuple(extract(tools, around, about)) if events.cards else (),
        whole=whole,
        names={id_: around.names[id_] for id_ in named},
        delta=around.delta,
        salt=around.salt,
        rules=around.rules,
        policy=around.policy,
        now=around.now,
    )


def _let_go(
    tools: Tools, around: Scene, noted: Sequence[Noted], receivers: Sequence[Receiver]
) -> tuple[list[Noted], list[Receiver]]:
    """Words as their owners let them go to everybody they may be told to: a provider is shown no more."""
    if not tools.filters:
        return list(noted), list(receivers)
    names, actor = around.names, around.loaded.claim.entity
    told = [one.id for one in receivers if one.part == "neighbour"]
    shown: list[Noted] = []
    for one in noted:
        text, ended = one.text, one.ended
        for reader in told:
            text = None if text is None else _leaving(tools, names, reader, text, {one.principal})
            ended = None if ended is None else _leaving(tools, names, reader, ended, {one.principal})
        if text is not None and (ended is None) == (one.ended is None):
            shown.append(replace(one, text=text, ended=ended))
    out: list[Receiver] = []
    for receiver in receivers:
        texts = [_leaving(tools, names, actor, old.text, old.principals) for old in receiver.old]
        kept = [replace(old, text=text) for old, text in zip(receiver.old, texts, strict=True) if text is not None]
        out.append(replace(receiver, old=tuple(kept)))
    return shown, out


async def put(tools: Tools, tenant: str, asking: Asking) -> Plan | None:
    """Ask the memory model; None where there is no reply.

    Where nothing in a reply can be used, the plan is that of the rules.
    """
    said = await ask(tools, tenant, "memory", asking.question.prompt, asking.question.reply)
    if said.value is None:
        return None
    written, repaired = updates.read(said.value, asking.question)
    made_by = f"{tools.models['memory'].model.name}, prompt {updates.VERSION}, rules {asking.rules}"
    items = [item for one in written if (item := _item(tools, asking, one, made_by)) is not None]
    if not items:  # it has read them, and all the same left nothing to tell
        return Plan(asking.whole, asking.policy, asking.cards, repaired=repaired)
    return Plan((*items, *asking.rest), asking.policy, asking.cards, by_model=True, repaired=repaired)


def _item(tools: Tools, asking: Asking, one: Written, made_by: str) -> Item | None:
    """An update as an item; None where a share filter holds it back."""
    share = 1 / (len(one.events) + len(one.old))
    sources = [(event.source, event.principal, share) for event in one.events]
    sources += [(source, whose, share * weight) for old in one.old for source, whose, weight in old.sources]
    text = _leaving(tools, asking.names, one.receiver.id, one.text, {whose for _, whose, _ in sources})
    if text is None:
        return None
    reader = asking.names[one.receiver.id]
    key = _replaced(one.old, {whose for _, whose, _ in sources}) or f"update:{one.events[0].source}"
    links = [link for part in (*one.events, *one.old) for link in part.links]
    return Item(
        id=item_id(asking.salt, reader, FacetKind.UPDATE, key, text, {source for source, _, _ in sources}),
        owner=one.receiver.id,
        kind=FacetKind.UPDATE,
        key=key,
        text=text,
        confidence=min(asking.delta, propagate.DAMPING * one.receiver.nearness),
        level=Level.RECORDS,
        links=tuple(dict.fromkeys(links))[:MAX_LINKS],
        sources=tuple(sources),
        made_by=made_by,
        hop=max([1, *(old.hop for old in one.old)]),
        trust=min([1.0, *(old.trust for old in one.old)]),
        at=asking.now,
        expires=asking.now + propagate.TTL_DAYS * DAY,
    )


def _replaced(old: Sequence[Memory], principals: set[int]) -> str | None:
    """The key of the older update that this one takes the place of.

    Only of one that rests on the same people: taking one person's words back must not take
    along what another said.
    """
    return next((one.key for one in old if one.key is not None and principals <= one.principals), None)


def _leaving(
    tools: Tools, names: Mapping[int, str] | Sequence[str], reader: int, text: str, principals: Collection[int]
) -> str | None:
    """The text as every owner behind it lets it go to one reader."""
    said: str | None = text
    for whose in sorted(set(principals) - {reader}):
        if said is not None:
            leaving = Leaving(Entity.parse(names[whose]), Entity.parse(names[reader]), said)
            said = tools.leaving([leaving])[0]
    return said
