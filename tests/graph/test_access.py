from datetime import timedelta

import pytest

from collab_layer.errors import UnknownIdError
from collab_layer.graph import access
from collab_layer.types.access import Token
from collab_layer.types.entity import Entity
from collab_layer.types.time import EPOCH, micros

AT = EPOCH + timedelta(days=20_000)


def issued(store, tenant, id_, principal="agent:a"):
    token = Token(id=id_, principal=Entity.parse(principal), created=AT, until=AT + timedelta(days=1))
    with store.database.write() as connection:
        access.add(connection, tenant, token, "d" * 64)
    return token


def test_a_token_is_found_in_its_tenant_alone(store):
    token = issued(store, "acme", "t1")
    with store.database.read() as connection:
        assert access.find(connection, "acme", "t1") == (token, "d" * 64)
        assert access.find(connection, "other", "t1") is None
        assert access.find(connection, "acme", "t2") is None


def test_a_token_is_revoked_once(store):
    issued(store, "acme", "t1")
    with store.database.write() as connection:
        access.revoke(connection, "acme", "t1", micros(AT))
    with store.database.write() as connection, pytest.raises(UnknownIdError):
        access.revoke(connection, "acme", "t1", micros(AT))
    with store.database.read() as connection:
        assert access.find(connection, "acme", "t1").token.revoked == AT


def test_an_erased_entity_leaves_no_token(store):
    issued(store, "acme", "t1", "agent:a")
    issued(store, "acme", "t2", "agent:a")
    kept = issued(store, "acme", "t3", "agent:b")
    issued(store, "other", "t4", "agent:a")
    with store.database.write() as connection:
        assert access.drop(connection, "acme", "agent:a") == 2
    with store.database.read() as connection:
        assert access.listed(connection, "acme") == [kept]
        assert len(access.listed(connection, "other")) == 1
