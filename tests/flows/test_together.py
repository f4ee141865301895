"""Entities that are worked off together come to what each would come to alone; a bad one holds up no other."""

from __future__ import annotations

import json
import random
import shutil

import pytest
from sqlalchemy import select

from collab_layer.config import Settings
from collab_layer.flows import pending, plan, work
from collab_layer.flows.keep import finish, keep
from collab_layer.flows.spread import Spread, _apart, spread
from collab_layer.graph import outbox
from collab_layer.graph.tables import cards, deliveries, derived, edges, entities, lineage, terms
from collab_layer.graph.tables import outbox as queue
from collab_layer.graph.tables import work as waiting
from collab_layer.plugins.specs import LinkerSpec
from collab_layer.sync import CollabLayer
from collab_layer.testing.memory import InMemoryBackend
from collab_layer.types.interaction import Interaction
from collab_layer.types.time import moment

from .timeline import SAID

BY_HAND = Settings(worker=False)
OWNERS = [f"user:u{n}" for n in range(9)] + ["agent:cy", "team:red"]
THINGS = ["item:dune", "item:emma", "tool:sqlite", "topic:go-modul", "user:u1", "item:x", "item:y"]
START = 1_767_225_600_000_000


@pytest.fixture
def layer(sqlite_url, clock):
    with CollabLayer.open(sqlite_url, tenant="acme", settings=BY_HAND, clock=clock) as layer:
        yield layer


def drawn(draw, count):
    """Random interactions, some at the same moment, some that replace nothing and say nothing."""
    told = []
    for _ in range(count):
        text = draw.choice([None, draw.choice(SAID), f"{draw.choice(SAID)} and the Blue Lamp {draw.randrange(4)} too"])
        told.append(
            Interaction(
                actor=draw.choice(OWNERS),
                target=draw.choice([None, *THINGS]) if text else draw.choice(THINGS),
                verb=draw.choice(["liked", "noted", "tried"]),
                text=text,
                links=draw.sample(THINGS, draw.randrange(3)),
                outcome=draw.choice([None, None, "it helped"]),
                at=moment(START + draw.randrange(40) * 3_600_000_000),
                weight=draw.choice([1.0, 1.0, 0.0]),
            )
        )
    return told


def prepared(url, clock, seed):
    """A tenant in the middle of its life: some of it worked off, some waiting, some private."""
    draw = random.Random(seed)
    with CollabLayer.open(url, tenant="acme", settings=BY_HAND, clock=clock) as layer:
        for owner in OWNERS:
            level = draw.choice(["records", "records", "facets", None])
            if level is not None:
                layer.observe(owner, "item:dune", "opened", at=moment(START))
                layer.grant(owner, draw.choice(["tenant", "kind:user", "user:u2"]), level)
        layer.observe(drawn(draw, 40))
        layer.drain()
        layer.observe(drawn(draw, 30))


def state(layer):
    """Everything that is stored and not made anew by chance: by names, since ids are given as they come."""
    with layer._layer._core.tools.store.database.read() as connection:
        called = dict(connection.execute(select(entities.c.id, entities.c.name)).all())
        e, c, t = edges.c, cards.c, terms.c
        lines = connection.execute(select(e.src, e.dst, e.kind, e.weight, e.at, e.valid_to, e.interaction)).all()
        held = connection.execute(
            select(
                c.interaction, c.owner, c.text, c.outcome, c.links, c.vector, c.at, c.valid_to, c.quarantine, c.length
            )
        ).all()
        words = connection.execute(select(c.interaction, t.term, t.tf).where(t.card == c.id)).all()
        items = [
            {**row, "confidence": round(row["confidence"], 9)}
            for row in connection.execute(select(derived)).mappings().all()
        ]
        return {
            "entities": sorted(
                connection.execute(
                    select(entities.c.name, entities.c.display, entities.c.since, entities.c.named, entities.c.degree)
                ).all()
            ),
            "edges": sorted((called[src], called[dst], *rest) for src, dst, *rest in lines),
            "cards": sorted(
                (*row[:4], [called[id_] for id_ in json.loads(row.links)], *row[5:])
                for row in held
            ),
            "terms": sorted(words),
            "derived": sorted(items, key=lambda row: row["id"]),
            "lineage": sorted(connection.execute(select(lineage)).all()),
            "waiting": [connection.execute(select(table)).all() for table in (queue, waiting, deliveries)],
        }  # fmt: skip


def claims(layer):
    tools = layer._layer._core.tools
    with tools.store.database.write() as connection:
        return tools, outbox.claim(connection, "acme", most=len(OWNERS))


def together(layer):
    tools, held = claims(layer)
    assert len(held) > 3
    so_far = Spread()
    layer._loop.run(spread(tools, held, so_far))
    assert {claim.entity for claim in so_far.done} == {claim.entity for claim in held}


def alone(layer):
    """Each by itself: first the records of all, then what is told of each."""
    tools, held = claims(layer)
    kept = []
    for claim in sorted(held, key=lambda claim: claim.interactions):
        loaded = pending.load(tools, [claim])
        kept += keep(tools, layer._loop.run(pending.find(tools, loaded)))
    for loaded in kept:
        if plan.may_be_told(loaded):
            [told] = plan.by_rules(tools, [loaded])
            assert finish(tools, [(loaded, told)]).done


def killed_and_taken_over(layer):
    """The records of all are stored, then the worker dies; another begins anew."""
    tools, held = claims(layer)
    keep(tools, layer._loop.run(pending.find(tools, pending.load(tools, held))))
    with tools.store.database.write() as connection:
        outbox.release(connection, held)  # as its lease does, only later
    layer.drain()


def by_draining(layer):
    layer.drain()


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_comes_to_what_its_entities_come_to_alone(tmp_path, clock, seed):
    prepared(str(tmp_path / "before.db"), clock, seed)
    states = []
    for way in (together, alone, killed_and_taken_over, by_draining):
        url = str(tmp_path / f"{way.__name__}.db")
        shutil.copy(tmp_path / "before.db", url)
        with CollabLayer.open(url, tenant="acme", settings=BY_HAND, clock=clock) as layer:
            way(layer)
            with layer._layer._core.tools.store.database.read() as connection:
                assert connection.execute(select(queue)).all() == []
            layer.drain()  # texts that were read before a name in them was known
            states.append(state(layer))
    first, *others = states
    assert first["derived"]
    for other in others:
        for what, rows in first.items():
            assert other[what] == rows, what


def _refuse(requests, names):
    if any("poison" in request.text for request in requests):
        raise ValueError("poison")
    return [[] for _ in requests]


def test_a_bad_entity_is_parked_and_holds_up_no_other(layer):
    layer._layer._core.tools.linkers = [LinkerSpec("bad", "breaks its promise", _refuse)]
    layer.observe("user:bad", text="this is poison")
    for n in range(6):
        layer.observe(f"user:u{n}", "item:dune", text=f"note {n} on the dunes")
    assert layer.drain() == 6
    assert layer.health().counts["parked"] == 1


def test_a_store_that_is_down_holds_up_only_those_whose_words_it_has(layer):
    store = InMemoryBackend()
    store.add("user:bad", "what only the store knows")
    layer.index(store)
    store.down = True
    layer.observe("user:good", "item:dune", text="the dunes are long")
    assert layer.drain() == 1
    store.down = False
    assert layer.drain() == 1


def test_one_whose_grant_changes_meanwhile_is_taken_up_anew_and_the_others_are_told(layer):
    for n in range(4):
        layer.observe(f"user:u{n}", "item:dune", "liked", text=f"note {n} on the dunes of Arrakis")
        layer.grant(f"user:u{n}", "tenant", "records")
    tools, held = claims(layer)
    worded = layer._loop.run(pending.find(tools, pending.load(tools, held)))
    layer.revoke(layer.grants("user:u0")[0].id)
    kept = keep(tools, worded)
    assert sorted(str(one.actor) for one in kept) == ["user:u1", "user:u2", "user:u3"]
    work._release(tools, held)  # else the drain waits for the lease to end
    assert layer.drain() >= 1


def test_an_erasure_meanwhile_loses_all_that_is_in_flight_and_nothing_else(layer):
    for n in range(4):
        layer.observe(f"user:u{n}", "item:dune", "liked", text=f"note {n} on the dunes of Arrakis")
    tools, held = claims(layer)
    worded = layer._loop.run(pending.find(tools, pending.load(tools, held)))
    layer.forget("user:u0")
    assert keep(tools, worded) == []
    work._release(tools, held)
    assert layer.drain() == 3


def test_two_that_tell_of_one_stored_memory_are_not_worked_off_at_once(layer):
    store = InMemoryBackend()
    ref = store.add("user:ann", "The go modules conflict was fixed by pinning")
    layer.attach(store)
    layer.observe([Interaction(actor=who, verb="remembered", ref=ref) for who in ("user:ann", "user:bob")])
    layer.observe("user:cat", text="nothing in any store")
    tools, held = claims(layer)
    groups = _apart(pending.load(tools, held))
    assert [[str(one.actor) for one in group] for group in groups] == [["user:ann", "user:cat"], ["user:bob"]]
