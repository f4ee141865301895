"""What readers are told before and after somebody joins or leaves never tells that one's part.

Readers pool their answers, ask of the past, forget what they were told and even themselves, and
know who came and went. The operator's `explain` says who is behind what they were shown.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from collab_layer.config import Settings
from collab_layer.errors import UnknownIdError
from collab_layer.graph import derived
from collab_layer.sync import CollabLayer
from collab_layer.testing.clock import FixedClock
from collab_layer.types.scope import Sharing

MINIMUM = 3
OWNERS = 7
READERS = ("user:reader", "user:friend")
STEP = st.one_of(
    st.tuples(st.sampled_from(["join", "leave", "forget"]), st.integers(0, OWNERS - 1)),
    st.tuples(st.sampled_from(["read", "past", "drop", "leave_and_return"]), st.integers(0, 1)),
    st.tuples(st.just("wait"), st.integers(1, 30)),
)


class Story:
    """Owners that all hold a thing or two, readers of whom everything they ever saw is kept."""

    def __init__(self, layer, clock):
        self.layer, self.clock = layer, clock
        self.grants, self.moments = {}, [clock()]
        self.seen = []  # subject, who is behind it
        self.last = {reader: () for reader in READERS}
        for reader in READERS:
            layer.observe(reader, "item:dune", "liked")
            layer.observe(reader, "item:solaris", "liked")
        for number in range(OWNERS):
            self.arrive(number)
        layer.drain()

    def arrive(self, number):
        self.layer.observe(f"user:o{number}", "item:dune", "liked")
        if number % 2:
            self.layer.observe(f"user:o{number}", "item:solaris", "liked")

    def step(self, what, which):
        getattr(self, what)(which)
        self.layer.drain()

    def join(self, number):
        if number not in self.grants:
            self.grants[number] = [self.layer.grant(f"user:o{number}", reader, "facets") for reader in READERS]

    def leave(self, number):
        for grant in self.grants.pop(number, ()):
            self.layer.revoke(grant.id)

    def forget(self, number):
        """It is erased, and comes back as somebody new."""
        self.grants.pop(number, None)
        self.layer.forget(f"user:o{number}")
        self.arrive(number)

    def wait(self, hours):
        self.clock.advance(hours=hours)
        self.moments.append(self.clock())

    def read(self, who):
        self._look(READERS[who], None)

    def past(self, who):
        for moment in self.moments[-3:]:
            self._look(READERS[who], moment)

    def drop(self, who):
        for id_ in self.last[READERS[who]]:
            self.layer.as_(READERS[who]).forget(id_)
        self.last[READERS[who]] = ()

    def leave_and_return(self, who):
        reader = READERS[who]
        self.last[reader] = ()
        self.layer.forget(reader)
        self.layer.observe(reader, "item:dune", "liked")
        self.layer.observe(reader, "item:solaris", "liked")
        for number in list(self.grants):
            for grant in self.grants[number]:
                if grant.to == reader:
                    self.grants[number].remove(grant)
                    self.grants[number].append(self.layer.grant(f"user:o{number}", reader, "facets"))
                    break

    def _look(self, reader, as_of):
        try:
            facets = self.layer.context(reader, as_of=as_of).facets
        except UnknownIdError:
            return
        for facet in facets:
            behind = self._behind(facet)
            assert facet.contributors == len(behind) >= MINIMUM
            assert facet.confidence == pytest.approx(round(facet.confidence, 1))
            assert facet.score == facet.confidence
            assert all(one.owner is None for one in facet.evidence)
            assert "of" not in facet.text.split(), "how many neighbours there are is nobody's business"
            self.seen.append((facet.links, behind))
        if as_of is None:
            self.last[reader] = tuple(facet.id for facet in facets)

    def _behind(self, facet):
        """Who is behind a facet, a returned owner as somebody new."""
        tools = self.layer._layer._core.tools
        with tools.store.database.read() as connection:
            return derived.get(connection, "acme", [facet.id])[facet.id].principals

    def check(self):
        """Whatever was told of one subject rests on the same owners, or on `MINIMUM` others at least."""
        for number, (links, behind) in enumerate(self.seen):
            for other_links, other in self.seen[:number]:
                if set(links) & set(other_links):
                    assert len(behind ^ other) not in range(1, MINIMUM), (links, behind, other)


def play(url, steps):
    clock = FixedClock()
    policy = Sharing.private(min_contributors=MINIMUM)
    options = {"tenant": "acme", "sharing": policy, "settings": Settings(worker=False), "clock": clock}
    with CollabLayer.open(url, **options) as layer:
        story = Story(layer, clock)
        for step in steps:
            story.step(*step)
        story.check()
        return story


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate])
@given(steps=st.lists(STEP, min_size=6, max_size=14))
def test_no_sequence_of_coming_going_and_asking_tells_of_one_owner(tmp_path_factory, steps):
    joined = [("join", number) for number in range(4)]
    play(str(tmp_path_factory.mktemp("story") / "collab.db"), [*joined, ("read", 0), *steps, ("read", 0), ("read", 1)])


BEFORE = [("join", 0), ("join", 1), ("join", 2), ("read", 0)]
ATTACKS = {
    "one joins": [*BEFORE, ("wait", 30), ("join", 3), ("read", 0)],
    "one leaves": [("join", 3), *BEFORE, ("wait", 30), ("leave", 3), ("read", 0)],
    "one is forgotten": [("join", 3), *BEFORE, ("wait", 30), ("forget", 3), ("read", 0)],
    "a friend asks later": [*BEFORE, ("join", 3), ("read", 1)],
    "a friend asks later and one has left": [("join", 3), *BEFORE, ("leave", 3), ("read", 1)],
    "of the past by a friend": [*BEFORE, ("wait", 30), ("join", 3), ("past", 1), ("read", 1)],
    "a friend forgets itself": [*BEFORE, ("leave_and_return", 0), ("join", 3), ("read", 0)],
    "what was told is forgotten": [*BEFORE, ("drop", 0), ("join", 3), ("read", 0)],
    "two steps that make one": [
        *BEFORE,
        *[("join", number) for number in (3, 4, 5)],
        ("wait", 30),
        ("read", 0),
        *[("leave", number) for number in (4, 5)],
        ("wait", 30),
        ("read", 0),
    ],
    "one changes places with another": [*BEFORE, ("leave", 2), ("join", 3), ("wait", 30), ("read", 0), ("read", 1)],
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_known_attack_tells_nothing(database_url, name):
    story = play(database_url, ATTACKS[name])
    assert story.seen, "the readers were told something before"


def test_enough_newcomers_are_told_of_in_the_next_epoch(database_url):
    story = play(database_url, [*BEFORE, *[("join", number) for number in (3, 4, 5)], ("wait", 30), ("read", 0)])
    assert {len(behind) for links, behind in story.seen} >= {3, 6}


def test_a_friend_is_shown_what_was_told_before_rather_than_nothing(database_url):
    story = play(database_url, [*BEFORE, ("join", 3), ("read", 1)])
    [(_, told), (_, again)] = [one for one in story.seen if len(one[1]) == 3][:2]
    assert told == again
