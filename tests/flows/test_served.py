"""Rankings that are served are compared with own memory alone, and what hurts an owner is muted."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import func, select

from collab_layer.bench import live
from collab_layer.config import Settings
from collab_layer.errors import NotPermittedError
from collab_layer.graph.tables import offered, rankings, verdicts
from collab_layer.stages.rank import OWN, SHARED
from collab_layer.sync import CollabLayer
from collab_layer.testing import ScriptedModel
from collab_layer.types.interaction import Interaction

PEOPLE, THINGS = 48, 60


def opened(url, clock, share=0.0, model=None, **how):
    settings = Settings(worker=False, holdout=share, **how)
    return CollabLayer.open(url, tenant="acme", settings=settings, clock=clock, reasoning_model=model)


def crowd(layer, clock):
    """Two tastes: even people like even things. The gate opens, since neighbours foretell what comes next."""
    batch = []
    for person in range(PEOPLE):
        for thing in random.Random(person).sample(range(person % 2, THINGS, 2), 10):
            clock.advance(minutes=10)
            batch.append(Interaction(actor=f"user:{person}", target=f"item:{thing}", verb="liked", at=clock()))
    layer.observe(batch)
    for person in range(PEOPLE):
        layer.grant(f"user:{person}", "tenant", "records")
    layer.drain()
    assert layer.refit().state == "open"


def ask(layer, clock, person, turn, follows=True):
    """A request of ten, and a choice: what the owner's own half likes, or stubbornly what stood first."""
    pick = random.Random(f"{person}.{turn}")
    mine, other = (pick.sample(range(half, THINGS, 2), 5) for half in (person % 2, 1 - person % 2))
    shown = [f"item:{n}" for n in [*other, *mine]]
    ranking = layer.rank(f"user:{person}", shown)
    clock.advance(minutes=5)
    taken = str(ranking.entities[0]) if follows and ranking.arm == "neighbours" else shown[5 if follows else 0]
    layer.observe(f"user:{person}", taken, "liked", at=clock())
    clock.advance(hours=3)
    return ranking


def rows(layer):
    layer.injections()  # writes what waits
    with layer._layer._core.tools.store.database.read() as connection:
        tables = (rankings, offered, verdicts)
        return [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables]


def test_whom_neighbours_hurt_is_served_alone_and_the_others_go_on(database_url, clock):
    with opened(database_url, clock) as layer:
        crowd(layer, clock)
        for turn in range(14):
            ask(layer, clock, 0, turn, follows=False)
            ask(layer, clock, 2, turn)
        hurt, helped = layer.lift("user:0"), layer.lift("user:2")
        assert hurt.both_orders.high < 0 < helped.both_orders.low
        assert not hurt.muted
        assert not live.report(layer, ["user:0"]).ok, "harm that is not muted misses the bar"
        layer.refit()
        assert layer.lift("user:0").muted
        assert not layer.lift("user:2").muted
        assert not layer.lift().muted, "one owner's harm is not everybody's"
        alone = ask(layer, clock, 0, 99, follows=False)
        assert alone.arm == "muted"
        assert set(alone.weights) == set(OWN)
        assert not any(item.evidence or set(item.features) & set(SHARED) for item in alone.items)
        assert not any("similar owner" in item.rationale for item in alone.items)
        assert ask(layer, clock, 2, 99).arm == "neighbours"
        rows = {row.name: row for row in live.report(layer, ["user:0"]).rows}
        assert rows["live.user:0.muted"].value == rows["live.muted_owners"].value == 1
        assert rows["live.user:0.both_orders.change"].high < 0
        assert rows["live.user:0.both_orders.change"].ok
        assert "1 owner" in " ".join(part.detail for part in layer.health().parts)


def test_a_mute_ends_when_its_owner_comes_to_choose_what_neighbours_hold(database_url, clock):
    with opened(database_url, clock) as layer:
        crowd(layer, clock)
        for turn in range(14):
            ask(layer, clock, 0, turn, follows=False)
        layer.refit()
        for turn in range(30, 48):  # served alone now; what it takes is what neighbours would have put first
            pick = [f"item:{n}" for n in random.Random(turn).sample(range(1, THINGS, 2), 6)]
            pick += [f"item:{n}" for n in random.Random(turn).sample(range(0, THINGS, 2), 1)]
            assert layer.rank("user:0", pick).arm == "muted"
            clock.advance(minutes=5)
            layer.observe("user:0", pick[-1], "liked", at=clock())
            clock.advance(hours=3)
        layer.refit()
        assert not layer.lift("user:0").muted
        assert ask(layer, clock, 0, 99).arm == "neighbours"


def test_a_mute_ends_when_what_it_rests_on_is_no_longer_kept(database_url, clock):
    with opened(database_url, clock, ranking_days=30) as layer:
        crowd(layer, clock)
        for turn in range(14):
            ask(layer, clock, 0, turn, follows=False)
        layer.refit()
        assert layer.lift("user:0").muted
        clock.advance(days=31)
        layer.refit()
        assert not layer.lift("user:0").muted


def test_without_a_worker_and_under_weights_that_were_set_drain_decides_whom_neighbours_hurt(database_url, clock):
    with opened(database_url, clock, ranking_days=30) as layer:
        crowd(layer, clock)
        weights = layer.rank("user:0", ["item:0"]).weights
        layer.set_weights(weights)
        for turn in range(14):
            assert ask(layer, clock, 0, turn, follows=False).gate.state == "set"
            ask(layer, clock, 2, turn)
        assert not layer.lift("user:0").muted
        layer.drain()
        assert layer.lift("user:0").muted
        assert not layer.lift("user:2").muted
        assert ask(layer, clock, 0, 99).weights.keys() <= set(OWN)
        clock.advance(days=31)
        layer.drain()
        assert not layer.lift("user:0").muted, "what it rested on is gone"
        assert layer.rank("user:0", ["item:0"]).gate.weights == weights, "the operator's word stays"


def test_a_tenant_that_neighbours_hurt_is_muted_as_a_whole(database_url, clock):
    with opened(database_url, clock) as layer:
        crowd(layer, clock)
        for turn in range(3):
            for person in range(0, 24, 2):
                ask(layer, clock, person, turn, follows=False)
        layer.refit()
        told = layer.lift()
        assert told.muted
        assert told.gate.muted
        ranking = layer.rank("user:40", ["item:1", "item:2"])
        assert (ranking.arm, ranking.gate.muted) == ("muted", True)
        assert "muted" in " ".join(part.detail for part in layer.health().parts)


def test_an_experiment_tells_what_neighbours_change(database_url, clock):
    with opened(database_url, clock, share=0.5) as layer:
        crowd(layer, clock)
        arms = [ask(layer, clock, person, turn).arm for turn in range(4) for person in range(0, 32, 2)]
        found = layer.lift().experiment
        assert found.alone_served == arms.count("holdout") > 10
        assert found.together_served == arms.count("neighbours") > 10
        assert found.low > 0
        assert found.change == pytest.approx(found.together - found.alone)
        assert layer.as_("user:0").lift("user:0").entity is not None
        with pytest.raises(NotPermittedError):
            layer.as_("user:0").lift("user:2")


def test_the_same_request_of_a_day_stays_in_its_arm_and_counts_once(database_url, clock):
    with opened(database_url, clock, share=0.5) as layer:
        crowd(layer, clock)
        for person in range(8):
            asked = [layer.rank(f"user:{person}", order) for order in (["item:1", "item:2"], ["item:2", "item:1"])]
            assert asked[0].arm == asked[1].arm
        for thing in ("item:1", "item:2"):
            layer.observe("user:3", thing, "liked", at=clock.advance(minutes=1))
        arms = layer.lift()
        both = [one for one in (arms.experiment, arms.both_orders) if one is not None]
        assert sum(one.together_cases for one in both[:1]) <= 1


def test_about_the_set_share_is_held_out_and_none_where_it_is_0(database_url, clock):
    with opened(database_url, clock, share=0.2) as layer:
        crowd(layer, clock)
        arms = [layer.rank(f"user:{n % PEOPLE}", [f"item:{n % THINGS}", f"item:{n % 7}"]).arm for n in range(400)]
        assert 45 <= arms.count("holdout") <= 120
    with opened(database_url, clock, share=0.0) as layer:
        assert {layer.rank(f"user:{n}", ["item:1"]).arm for n in range(PEOPLE)} == {"neighbours"}


def test_while_the_gate_is_shut_nothing_is_held_out_and_nothing_kept(database_url, clock):
    with opened(database_url, clock, share=0.5) as layer:
        layer.observe("user:0", "item:1", "liked")
        layer.drain()
        assert {layer.rank("user:0", [f"item:{n}", "item:1"]).arm for n in range(40)} == {"neighbours"}
        assert rows(layer) == [0, 0, 0]


def test_reads_of_the_past_of_strangers_and_of_things_are_not_compared(database_url, clock):
    with opened(database_url, clock, share=0.5) as layer:
        crowd(layer, clock)
        for n in range(20):
            assert layer.rank("user:0", [f"item:{n}"], as_of=clock()).arm == "neighbours"
            for who in ("user:stranger", "item:3"):
                assert layer.rank(who, [f"item:{n}"]).arm == "neighbours"
        assert rows(layer) == [0, 0, 0]


def test_where_nothing_may_be_kept_there_is_no_experiment(database_url, clock):
    with opened(database_url, clock, share=0.5, ranking_days=0) as layer:
        crowd(layer, clock)
        assert {layer.rank("user:0", [f"item:{n}"]).arm for n in range(20)} == {"neighbours"}
        assert rows(layer) == [0, 0, 0]


def test_an_erased_owner_and_an_erased_thing_leave_the_log(database_url, clock):
    with opened(database_url, clock) as layer:
        crowd(layer, clock)
        for turn in range(14):
            ask(layer, clock, 0, turn, follows=False)
            ask(layer, clock, 2, turn)
        layer.refit()
        before = rows(layer)
        assert before == [28, 280, 1]
        layer.forget("item:3")
        assert rows(layer)[1] < before[1]
        layer.forget("user:0")
        after = rows(layer)
        assert (after[0], after[2]) == (14, 0)
        with layer._layer._core.tools.store.database.read() as connection:
            held = set(connection.execute(select(offered.c.ranking)).scalars())
            assert held <= set(connection.execute(select(rankings.c.id)).scalars())


def test_what_waits_in_memory_when_its_owner_is_erased_is_not_written(database_url, clock):
    with opened(database_url, clock) as layer:
        crowd(layer, clock)
        layer.rank("user:0", ["item:1", "item:2"])
        layer.rank("user:2", ["item:1", "item:2"])
        layer.forget("user:0")
        assert rows(layer)[0] == 1


def test_old_rankings_are_removed(database_url, clock):
    with opened(database_url, clock, ranking_days=5) as layer:
        crowd(layer, clock)
        layer.rank("user:0", ["item:1"])
        assert rows(layer)[0] == 1
        clock.advance(days=6)
        layer.drain()
        assert rows(layer) == [0, 0, 0]


def test_a_late_choice_is_owed_to_no_ranking(database_url, clock):
    with opened(database_url, clock, choice_days=2) as layer:
        crowd(layer, clock)
        for person, hours in ((0, 47), (2, 49)):
            layer.rank(f"user:{person}", ["item:2", "item:4"])
            layer.observe(f"user:{person}", "item:2", "liked", at=clock.advance(hours=hours))
        assert layer.lift("user:0").both_orders.together_cases == 1
        assert layer.lift("user:2").both_orders is None


def test_nothing_crosses_tenants(database_url, clock):
    with opened(database_url, clock) as layer:
        crowd(layer, clock)
        ask(layer, clock, 0, 1)
        assert layer.for_tenant("other").lift().both_orders is None


def test_a_model_hears_nothing_of_neighbours_where_they_are_held_out(sqlite_url, clock):
    asked = []

    def scores(prompt):
        asked.append(prompt.data)
        return {"scores": []}

    with opened(sqlite_url, clock, share=0.5, model=ScriptedModel(scores)) as layer:
        crowd(layer, clock)
        layer.observe("user:2", "item:9", "loved", text="Item nine tells of a canary in a mine")
        layer.drain()
        for n in range(12):
            asked.clear()
            ranking = layer.rank("user:0", ["item:9", f"item:{2 * n}"])
            if ranking.arm == "holdout":
                assert ranking.facets == ()
                assert asked
                assert not any("canary" in said or "similar" in said for said in asked)
