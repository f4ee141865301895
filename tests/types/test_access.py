from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collab_layer.types.access import MAX_TOKEN, Bearer

TENANTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=100)


@given(TENANTS)
def test_a_token_is_read_back_as_it_was_written(tenant):
    one = Bearer.new(tenant)
    assert Bearer.read(one.text()) == one


def test_the_longest_tenant_fits():
    one = Bearer.new("\U0001f600" * 128)
    assert len(one.text()) <= MAX_TOKEN
    assert Bearer.read(one.text()) == one


@given(st.text(max_size=200))
def test_other_text_is_no_token(text):
    assert Bearer.read(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "collab_.t0123456789abcdef." + "A" * 43,
        "collab_YWNtZQ.t0123456789abcdef." + "A" * 42,
        "collab_YWNtZQ.t0123456789ABCDEF." + "A" * 43,
        "collab_YWNtZR.t0123456789abcdef." + "A" * 43,  # other text for the same bytes
        "collab__w.t0123456789abcdef." + "A" * 43,  # no UTF-8
        "collab_YWNtZQ.t0123456789abcdef." + "A" * 43 + "\n",
        " collab_YWNtZQ.t0123456789abcdef." + "A" * 43,
    ],
)
def test_what_is_nearly_a_token_is_none(text):
    assert Bearer.read(text) is None


def test_two_tokens_share_no_secret():
    assert len({Bearer.new("acme").secret for _ in range(100)}) == 100
