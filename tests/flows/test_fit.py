"""Weights are learned from what owners chose earlier, each read as of the moment before."""

import random
import time

import pytest

from collab_layer.config import Settings
from collab_layer.errors import NotPermittedError, UnknownIdError
from collab_layer.flows import choices
from collab_layer.stages.few import Weights
from collab_layer.stages.rank import OWN, SHARED
from collab_layer.sync import CollabLayer
from collab_layer.types.interaction import Interaction


def tastes(clock, people=48, apart=True):
    """Everybody likes ten of forty things in some order; of one's own twenty only, where tastes lie apart."""
    batch = []
    for person in range(people):
        mine = range(person % 2, 40, 2) if apart else range(40)
        for thing in random.Random(person).sample(list(mine), 10):
            clock.advance(minutes=10)
            batch.append(Interaction(actor=f"user:{person}", target=f"item:{thing}", verb="liked", at=clock()))
    return batch


def tell(layer, clock, level="records", **how):
    batch = tastes(clock, **how)
    layer.observe(batch)
    for actor in dict.fromkeys(one.actor for one in batch):
        layer.grant(actor, "tenant", level)
    layer.drain()


def test_the_gate_opens_where_neighbours_foretell_choices(layer, clock):
    tell(layer, clock)
    found = layer.refit()
    assert found.state == "open"
    assert found.cases == 48
    assert 0 < found.low < found.gain
    assert sum(found.weights[name] for name in SHARED) > 0.3
    ranking = layer.rank("user:0", ["item:1", "item:3"])
    assert ranking.gate == found
    assert ranking.holds == 10
    assert ranking.weights == pytest.approx(Weights(found.weights, found.few).at(10))


def test_who_holds_little_is_ranked_by_weights_that_paid_where_little_was_known(layer, clock):
    tell(layer, clock)
    found = layer.refit()
    assert found.few is not None
    assert 0 < found.few_low < found.few_gain
    layer.observe("user:new", "item:2", verb="liked")
    layer.drain()
    ranking = layer.rank("user:new", ["item:1", "item:4"])
    assert ranking.holds == 1
    assert ranking.weights == pytest.approx(found.few, rel=0.02, abs=0.02)
    assert str(ranking.entities[0]) == "item:4"
    assert layer.rank("user:nobody", ["item:1"]).weights == pytest.approx(found.few)


def test_owners_of_few_things_do_not_crowd_out_those_whose_choices_can_be_learned_from(layer, clock):
    tell(layer, clock)
    for at in range(400):
        layer.observe(f"user:small{at}", f"item:{at % 40}", verb="liked")
    layer.drain()
    assert layer.refit().cases > 20


def test_it_stays_shut_where_they_do_not(layer, clock):
    tell(layer, clock, apart=False)
    found = layer.refit()
    assert found.state == "shut"
    assert found.low <= 0
    assert all(found.weights[name] <= 1e-6 for name in SHARED)


def test_without_grants_there_is_nothing_to_learn_from(layer, clock):
    layer.observe(tastes(clock))
    layer.drain()
    found = layer.refit()
    assert found.state == "shut"
    assert found.gain == 0


def test_while_it_is_shut_neighbours_decide_where_own_memory_sees_no_difference(layer, clock):
    tell(layer, clock, apart=False)
    layer.refit()
    ranking = layer.rank("user:0", ["item:nobody", "item:3"])
    assert str(ranking.entities[0]) == "item:3"
    assert abs(ranking.items[0].score) < 1e-3


def test_too_few_choices_keep_it_shut(layer, clock):
    """Nothing has shown yet that neighbours do no harm."""
    tell(layer, clock, people=6)
    before = layer.rank("user:0", ["item:1"])
    found = layer.refit()
    assert found.state == "untested"
    assert found.weights == before.weights
    assert before.gate.state == "untested"
    assert all(found.weights[name] <= 1e-6 for name in SHARED)
    assert all(found.weights[name] > 0 for name in OWN)


def test_it_opens_as_choices_come_in(layer, clock):
    batch = tastes(clock)
    layer.observe(batch[:150])
    for actor in dict.fromkeys(one.actor for one in batch):
        layer.grant(actor, "tenant", "records")
    layer.drain()
    assert layer.refit().state == "untested"
    layer.observe(batch[150:])
    layer.drain()
    assert layer.refit().state == "open"


def test_no_case_knows_its_own_choice_or_what_came_later(layer, clock):
    """Things are chosen at random, each by two people at most: edges of later events would tell the choice."""
    layer.observe(tastes(clock, people=40, apart=False))
    for person in range(40):
        layer.grant(f"user:{person}", "tenant", "records")
    for person in range(40):
        clock.advance(minutes=10)
        for of in (person, (person + 1) % 40):
            layer.observe(f"user:{of}", f"item:last-{person}", "liked", at=clock())
    layer.drain()
    layer.rebuild()
    assert layer.refit().weights["item_edges"] < 0.2


def test_what_the_operator_sets_is_used_until_it_fits_again(layer, clock):
    tell(layer, clock)
    layer.set_weights({"popularity": 1.0})
    gate = layer.rank("user:0", ["item:1"]).gate
    assert (gate.state, gate.weights) == ("set", {"popularity": 1.0})
    assert layer.refit().version != gate.version


def test_what_neighbours_change_is_told_with_its_interval(layer, clock):
    tell(layer, clock)
    assert layer.lift().gate.state == "untested"
    gate = layer.refit()
    told = layer.lift()
    assert (told.gate, told.experiment, told.both_orders, told.muted) == (gate, None, None, False)
    whole = told.replay
    assert whole.together_cases == 48
    assert whole.change == pytest.approx(whole.together - whole.alone)
    assert whole.low < whole.change < whole.high
    assert whole.change > 0
    one = layer.lift("user:7").best
    assert one.together_cases == 6  # ten choices, of which the first four are too early
    assert one.low <= one.change <= one.high


def test_a_principal_asks_for_itself_only(layer, clock):
    tell(layer, clock, people=4)
    assert layer.as_("user:1").lift("user:1").replay.together_cases == 6
    for other in (None, "user:2"):
        with pytest.raises(NotPermittedError):
            layer.as_("user:1").lift(other)
    with pytest.raises(UnknownIdError):
        layer.lift("user:nobody")


def test_only_the_operator_fits(layer):
    with pytest.raises(NotPermittedError):
        layer.as_("user:0").refit()


def until(true):
    for _ in range(2_000):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("the worker did not get to it")


def test_an_idle_worker_learns_by_itself(database_url, clock):
    with CollabLayer.open(database_url, settings=Settings(worker=True), clock=clock) as layer:
        tell(layer, clock)
        until(lambda: layer.rank("user:0", ["item:1", "item:3"]).gate.state == "open")
        assert layer.rank("user:0", ["item:2", "item:4"]).items[0].features["item_edges"] > 0


def test_a_worker_leaves_alone_what_the_operator_chose(database_url, clock):
    with CollabLayer.open(database_url, settings=Settings(worker=True), clock=clock) as layer:
        layer.set_weights(dict.fromkeys(OWN, 1.0))
        tell(layer, clock)
        until(lambda: layer.rank("user:0", ["item:2"]).items[0].features["item_edges"] > 0)
        assert layer.rank("user:0", ["item:2"]).gate.state == "set"


def test_owners_erased_since_their_choices_were_read_are_left_out(layer):
    for owner in range(4):
        for thing in range(8):
            layer.observe(f"user:u{owner}", f"item:i{owner + thing}", verb="liked")
    layer.drain()
    tools, run = layer._layer._core.tools, layer._loop.run
    found = run(choices.choices(tools, layer.tenant, 4))
    before = len(run(choices.cases(tools, layer.tenant, found)))
    layer.forget("user:u0")
    assert len(run(choices.cases(tools, layer.tenant, found))) == before - 1
