from datetime import UTC, datetime, timedelta

import pytest
from collab_layer_graphiti import mapping, words
from collab_layer_graphiti.times import span_of, window
from graphiti_core.helpers import validate_group_id
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from collab_layer.errors import InputError
from collab_layer.ports.stored_facts import Span
from collab_layer.types.entity import Entity

KINDS = st.sampled_from(["user", "agent", "team", "session", "app", "item", "ticket_line", "collab_for"])
TRICKY = st.text(alphabet="ab4_-0fагЁ@.кот🐈", min_size=1, max_size=24)
NATIVE = st.text(alphabet="abAB019_-", min_size=1, max_size=40)


@st.composite
def entities(draw):
    id_ = draw(st.one_of(TRICKY, NATIVE, st.text(min_size=1, max_size=60)))
    try:
        return Entity(draw(KINDS), id_)
    except InputError:
        assume(False)


@given(entities())
@settings(deadline=None, max_examples=500)
def test_every_entity_has_a_group_that_graphiti_takes_and_that_names_it_again(entity):
    group = mapping.group_of(entity)
    assert validate_group_id(group)
    assert mapping.owner_of(group) == entity


@given(entities(), entities())
@settings(deadline=None, max_examples=500)
def test_two_entities_never_share_a_group(one, other):
    assume(one != other)
    assert mapping.group_of(one) != mapping.group_of(other)
    assert mapping.derived_group(one) != mapping.group_of(other)


@given(NATIVE)
@settings(deadline=None, max_examples=500)
def test_a_group_that_names_an_entity_is_the_group_of_that_entity(group):
    owner = mapping.owner_of(group)
    assert owner is None or mapping.group_of(owner) == group


@pytest.mark.parametrize(
    ("group", "owner"),
    [
        ("alice", "user:alice"),
        ("user_42", "user:user_42"),
        ("my__group", "user:my__group"),
        ("2f1c0d9e-0000-4000-8000-00000000000a", "user:2f1c0d9e-0000-4000-8000-00000000000a"),
        ("agent_coder", "agent:coder"),
        ("team_support", "team:support"),
        ("_", "user:_"),
        ("alice__40__example__2e__org", "user:alice@example.org"),
    ],
)
def test_groups_that_are_there_already_name_the_owner_one_expects(group, owner):
    assert str(mapping.owner_of(group)) == owner


@pytest.mark.parametrize("group", ["", None, 7, "a b", "collab_for_alice", "a__ff__", "agent_", "collab_kind_Item-x"])
def test_what_names_nobody_has_no_owner(group):
    assert mapping.owner_of(group) is None


def test_a_user_that_is_called_like_an_agents_group_has_another_group():
    assert mapping.group_of(Entity("user", "agent_coder")) != mapping.group_of(Entity("agent", "coder"))
    assert mapping.group_of(Entity("user", "collab_for_bob")) != mapping.derived_group(Entity("user", "bob"))


def test_a_version_changes_with_the_words_the_time_and_the_links():
    ann, begin = Entity("user", "ann"), datetime(2026, 1, 1, tzinfo=UTC)
    row = {"uuid": "f1", "fact": "Uses SQLite", "links": ["tool:sqlite"]}
    versions = {
        mapping.record("graphiti", ann, {**row, **change}, Span(begin, end)).ref.version
        for change, end in [
            ({}, None),
            ({}, begin + timedelta(days=1)),
            ({"fact": "Uses PostgreSQL"}, None),
            ({"links": []}, None),
        ]
    }
    assert len(versions) == 4


class TestTimes:
    def test_a_fact_begins_when_it_is_true_else_when_it_was_said_else_when_it_was_stored(self):
        stored = {"created_at": "2026-03-01T00:00:00+00:00"}
        said = {**stored, "reference_time": "2026-02-01T00:00:00+00:00"}
        true = {**said, "valid_at": "2026-01-01T00:00:00+00:00"}
        assert [span_of(row).begin.month for row in (stored, said, true)] == [3, 2, 1]

    def test_a_known_end_counts_more_than_the_day_it_was_noted(self):
        row = {"created_at": "2026-01-01", "invalid_at": "2030-01-01", "expired_at": "2026-01-02"}
        assert span_of(row).end.year == 2030
        assert span_of({**row, "invalid_at": None}).end == datetime(2026, 1, 2, tzinfo=UTC)

    def test_a_fact_that_ends_before_it_begins_never_held(self):
        assert span_of({"valid_at": "2026-02-01", "invalid_at": "2026-01-01"}) is None
        assert span_of({"valid_at": "2026-02-01", "invalid_at": "2026-02-01"}) is None

    def test_times_of_neo4j_are_read_too(self):
        from neo4j.time import DateTime

        assert span_of({"valid_at": DateTime.from_native(datetime(2026, 1, 1, tzinfo=UTC))}).begin.year == 2026

    @given(st.datetimes(timezones=st.just(UTC)))
    def test_a_window_is_always_around_its_time(self, at):
        bounds = window(at)
        assert bounds["early"] <= at <= bounds["late"]


class TestWords:
    def test_stems_are_found_in_other_forms_in_both_languages(self):
        assert words.score(words.stems("parsers failing"), "The parser fails") == 1.0
        assert words.score(words.stems("Парсеры падают"), "парсер падает на кавычках") == 1.0

    def test_a_word_in_the_middle_of_another_does_not_count(self):
        assert words.score(words.stems("art"), "The party starts") == 0.0

    @given(st.text(max_size=80))
    @settings(deadline=None)
    def test_every_stem_begins_a_word_of_its_query(self, query):
        assert words.score(words.stems(query), query) in (0.0, 1.0)

    def test_punctuation_has_no_stems(self):
        assert words.stems(" ?! -- ") == []
