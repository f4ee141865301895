from __future__ import annotations

from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from collab_layer.stages.asked import schema

from .replies import JSON, assert_bounded  # isort: skip


class Row(schema.Lenient):
    id: schema.Id = ""
    text: schema.Text = ""
    score: schema.Number = None
    cites: schema.Ids = ()


class Rows(schema.Lenient):
    rows: Annotated[tuple[Row, ...], schema.Parts] = ()


ROW = schema.obj(
    id=schema.one_of(["c1", "c2"]),
    text=schema.text(40),
    score=schema.whole(0, 9),
    cites=schema.some_of(["e1"], 3, least=1),
)
CLOSED = schema.closed(Rows, schema.obj(rows=schema.many(ROW, 2)))


def test_the_schema_is_ours_and_the_validation_stays_lenient():
    described = assert_bounded(CLOSED)
    row = described["properties"]["rows"]["items"]
    assert row["properties"]["id"] == {"type": "string", "enum": ["c1", "c2"]}
    assert row["properties"]["cites"]["maxItems"] == 1
    assert issubclass(CLOSED, Rows)
    assert CLOSED.__name__ == "Rows"
    assert "additionalProperties" not in Rows.model_json_schema()
    reply = CLOSED.model_validate_json('{"rows": [{"id": "C2", "score": "7.5", "cites": "e1, e2", "more": 1}, null]}')
    assert reply.rows == (Row(id="c2", score=7.5, cites=("e1", "e2")), Row())


def test_two_questions_do_not_share_a_schema():
    other = schema.closed(Rows, schema.obj(rows=schema.many(ROW, 5)))
    other.model_json_schema()["properties"]["rows"]["maxItems"] = 99
    assert CLOSED.model_json_schema()["properties"]["rows"]["maxItems"] == 2
    assert other.model_json_schema()["properties"]["rows"]["maxItems"] == 5


def test_without_ids_the_schema_still_is_one():
    described = assert_bounded(schema.closed(Rows, schema.obj(cites=schema.some_of([], 3, least=1))))
    assert described["properties"]["cites"] == {
        "type": "array",
        "items": {"type": "string", "maxLength": 8},
        "minItems": 0,
        "maxItems": 0,
    }


@pytest.mark.parametrize(
    ("given_value", "number"),
    [
        (7, 7.0),
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("NaN", None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
        ("9" * 400, None),
        (True, None),
        (None, None),
        ("seven", None),
        ([7], None),
        ({}, None),
    ],
)
def test_numbers_are_read_where_they_are_numbers(given_value, number):
    assert Row(score=given_value).score == number


@pytest.mark.parametrize(
    ("given_value", "ids"),
    [
        (["m1", "m2"], ("m1", "m2")),
        ("m1", ("m1",)),
        ("[m1], (M2) and m1", ("m1", "m2", "m1")),
        ("m1.2", ("m1",)),
        (["m1", None, "m1"], ("m1", "m1")),
        ([["m1"], "m2"], ("m1", "m2")),
        (None, ()),
        ("", ()),
        ([], ()),
        ("dune", ("dune",)),
        ("item1", ("item1",)),
        ([3, True], ("3", "?")),
        ({"m1": 1}, ("?",)),
    ],
)
def test_ids_are_found_and_what_is_none_is_kept_to_be_counted(given_value, ids):
    assert Row(cites=given_value).cites == ids


def test_texts_are_cut_and_can_be_encoded():
    assert Row(text="x" * 100_000).text == "x" * schema.MAX_CHARS
    assert Row(text="a\ud800b").text == "ab"
    assert (Row(text=None).text, Row(text=["a"]).text, Row(text=3).text) == ("", "", "3")


@pytest.mark.parametrize(
    ("value", "count"),
    [('{"rows": {"id": "c1"}}', 1), ('[{"id": "c1"}, 3, "c2"]', 3), ("{}", 0), ('{"rows": null}', 0)],
)
def test_a_single_row_or_a_bare_list_is_taken_as_the_list(value, count):
    assert len(CLOSED.model_validate_json(value).rows) == count


@pytest.mark.parametrize("value", ["3", '"c1"', "null", "", "{"])
def test_what_is_no_object_at_all_is_refused_so_that_the_model_is_asked_again(value):
    with pytest.raises(ValidationError):
        CLOSED.model_validate_json(value)


def test_any_type_of_reply_is_taken():
    class Other(BaseModel):
        rows: list[dict[str, str]] = [{"id": "c1"}]

    assert schema.taken(Rows, Other()).rows == (Row(id="c1"),)
    mine = CLOSED()
    assert schema.taken(Rows, mine) is mine


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Likes Dune [m1].", "Likes Dune."),
        ("Likes Dune (m1, m2) and Solaris [e3; e4]", "Likes Dune and Solaris"),
        ("The M1 chip, version (v2 of it), list[i]", "The M1 chip, version (v2 of it), list[i]"),
    ],
)
def test_ids_in_brackets_are_left_out_of_texts(said, left):
    assert schema.without_ids(said) == left


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(["rows", "id", "x"]), JSON, max_size=3))
def test_any_object_is_taken(value):
    reply = CLOSED.model_validate(value)
    for row in reply.rows:
        row.text.encode()
        assert all(isinstance(id_, str) for id_ in (row.id, *row.cites))
    assert schema.taken(Rows, reply) is reply
