from datetime import UTC, datetime

import pytest
from collab_layer_mem0 import mapping
from collab_layer_mem0.asked import owner_asked, wildcard_field
from collab_layer_mem0.lenient import fold
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from collab_layer.errors import InvalidEntityError
from collab_layer.types.entity import Entity

NATIVE = st.text(min_size=1, max_size=60).filter(lambda text: text == text.strip())
STORED = {"user_id": "ann", "data": "The parser fails", "hash": "h", "created_at": "2026-05-01T10:00:00+00:00"}


@given(NATIVE)
@settings(deadline=None, max_examples=300)
def test_every_native_id_becomes_an_entity_and_comes_back_as_it_was(native):
    entity = Entity("user", mapping.encode_id(native))
    assert mapping.decode_id(entity.id) == native


@given(NATIVE, NATIVE)
@settings(deadline=None, max_examples=300)
def test_two_native_ids_never_become_one_entity(one, other):
    assume(one != other)
    assert Entity("user", mapping.encode_id(one)) != Entity("user", mapping.encode_id(other))


@pytest.mark.parametrize(
    ("native", "encoded"),
    [
        ("alice", "alice"),
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        ("100%", "100%"),
        ("a*b", "a%2Ab"),
        ("Анна", "Анна"),
        ("e\u0301", "e%CC%81"),
    ],
)
def test_only_what_an_entity_refuses_or_could_misread_is_encoded(native, encoded):
    assert mapping.encode_id(native) == encoded


def test_a_composed_and_a_decomposed_letter_stay_two_owners():
    assert mapping.entity("user_id", "\u00e9") != mapping.entity("user_id", "e\u0301")


def test_an_id_that_is_too_long_is_refused_not_shortened():
    with pytest.raises(InvalidEntityError):
        mapping.entity("user_id", "n" * 300)
    assert mapping.owner_of({"user_id": "n" * 300}) is None


def test_an_entity_that_would_mean_everybody_has_no_native_scope():
    assert mapping.native_scope(Entity("user", "%2A")) is None
    assert mapping.native_scope(Entity("item", "dune")) is None
    assert mapping.native_scope(Entity("session", "a%2Fb")) == {"run_id": "a/b"}


def test_the_user_owns_and_the_other_ids_become_links():
    payload = {**STORED, "agent_id": "coder", "run_id": "r1", "app_id": "shop"}
    record = mapping.record("mem0", "m1", payload)
    assert record.owner == Entity("user", "ann")
    assert record.links == (Entity("agent", "coder"), Entity("session", "r1"), Entity("app", "shop"))


def test_an_agent_owns_before_a_run():
    payload = {"agent_id": "coder", "run_id": "r1", "data": "x"}
    assert mapping.owner_of(payload) == Entity("agent", "coder")
    assert mapping.owner_of({"run_id": "r1"}) == Entity("session", "r1")
    assert mapping.owner_of({}) is None


def test_explicit_links_are_read_from_text_and_lists_and_bad_ones_are_left_out():
    text = mapping.record("mem0", "m1", {**STORED, "collab_links": "tool:pip, topic:go-modules, nonsense, user:ann"})
    listed = mapping.record("mem0", "m1", {**STORED, "collab_links": ["tool:pip", 7, "topic:go-modules"]})
    assert text.links == listed.links == (Entity("tool", "pip"), Entity("topic", "go-modules"))


def test_a_version_changes_with_the_text_and_with_the_metadata():
    first = mapping.version_of({"hash": "a", "updated_at": "1"})
    assert first != mapping.version_of({"hash": "b", "updated_at": "1"})
    assert first != mapping.version_of({"hash": "a", "updated_at": "2"})


def test_a_record_holds_through_its_expiration_date():
    record = mapping.record("mem0", "m1", {**STORED, "expiration_date": "2026-05-03"})
    assert record.valid_to == datetime(2026, 5, 4, tzinfo=UTC)
    assert record.at == datetime(2026, 5, 1, 10, tzinfo=UTC)


def test_what_the_layer_wrote_and_what_has_no_text_are_no_records():
    assert mapping.record("mem0", "m1", {**STORED, "user_id": None, "agent_id": "collab"}) is None
    assert mapping.record("mem0", "m1", {**STORED, "collab_key": "update:1"}) is None
    assert mapping.record("mem0", "m1", {**STORED, "data": "  "}) is None
    assert mapping.record("mem0", "m1", {**STORED, "user_id": "ann", "agent_id": "collab"}) is not None


@pytest.mark.parametrize(
    ("filters", "owner"),
    [
        ({"user_id": "ann"}, "user:ann"),
        ({"user_id": " ann "}, "user:ann"),
        ({"user_id": 7}, "user:7"),
        ({"user_id": "ann", "agent_id": "coder", "run_id": "r"}, "user:ann"),
        ({"agent_id": "coder", "run_id": "r"}, "agent:coder"),
        ({"app_id": "shop"}, "app:shop"),
        ({"AND": [{"user_id": "ann"}, {"agent_id": "coder"}]}, "user:ann"),
        ({"AND": [{"user_id": "ann"}, {"AND": [{"user_id": "ann"}]}]}, "user:ann"),
        ({"user_id": "ann", "agent_id": None}, "user:ann"),
    ],
)
def test_the_owner_of_a_search_is_told_from_its_filters(filters, owner):
    assert str(owner_asked({"query": "x", "filters": filters})) == owner


@pytest.mark.parametrize(
    "filters",
    [
        None,
        {},
        {"user_id": ["ann", "bob"]},
        {"user_id": {"in": ["ann"]}},
        {"user_id": True},
        {"OR": [{"user_id": "ann"}, {"user_id": "bob"}]},
        {"user_id": "ann", "OR": [{"role": "user"}]},
        {"NOT": [{"user_id": "ann"}]},
        {"AND": [{"user_id": "ann"}, {"user_id": "bob"}]},
        {"AND": [{"user_id": "ann"}, "odd"]},
        {"user_id": "ann", "category": "work"},
        {"category": "work"},
        "odd",
    ],
)
def test_no_owner_is_guessed_where_none_can_be_told(filters):
    assert owner_asked({"query": "x", "filters": filters}) is None


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"user_id": "*"}, "user_id"),
        ({"agent_id": " * "}, "agent_id"),
        ({"filters": {"run_id": "*"}}, "run_id"),
        ({"filters": {"AND": [{"x": 1}, {"OR": [{"user_id": {"in": ["a", "*"]}}]}]}}, "user_id"),
        ({"filters": {"user_id": "a*"}}, None),
        ({"filters": {"category": "*"}}, None),
        ({"query": "*"}, None),
    ],
)
def test_a_star_is_found_as_an_id_wherever_it_hides(arguments, field):
    assert wildcard_field(arguments) == field


class TestCallsOfMem0One:
    def test_ids_and_limit_of_a_search_move_to_where_two_takes_them(self):
        call = {"query": "q", "user_id": "ann", "agent_id": None, "limit": 5, "output_format": "v1.1"}
        assert fold("search", call, platform=False) == {"query": "q", "top_k": 5, "filters": {"user_id": "ann"}}

    def test_filters_of_a_search_stay_and_win_over_ids(self):
        call = {"query": "q", "user_id": "ann", "filters": {"user_id": "bob", "x": 1}}
        assert fold("search", call, platform=False)["filters"] == {"user_id": "bob", "x": 1}

    def test_a_search_without_ids_stays_without_filters(self):
        assert fold("search", {"query": "q", "user_id": None}, platform=False) == {"query": "q"}

    def test_filters_of_an_add_become_ids_where_add_has_none(self):
        call = {"messages": "m", "filters": {"user_id": "ann", "x": 1}, "run_id": None, "output_format": "v1.1"}
        assert fold("add", call, platform=False) == {"messages": "m", "user_id": "ann"}
        assert fold("add", call, platform=True)["filters"] == {"user_id": "ann", "x": 1}

    def test_other_methods_are_left_alone(self):
        assert fold("update", {"data": "x", "version": 1}, platform=False) == {"data": "x", "version": 1}
