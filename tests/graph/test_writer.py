from sqlalchemy import func, select

from collab_layer.graph import writer
from collab_layer.graph.tables import edges, interactions, outbox, work
from collab_layer.types.interaction import Interaction


def _count(store, table):
    with store.database.read() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar()


def _observe(store, *batch, tenant="acme"):
    with store.database.write() as connection:
        return writer.observe(connection, store.adjacency, tenant, batch, 1)


def test_the_same_key_of_the_same_actor_is_stored_once(store):
    first = _observe(store, Interaction(actor="user:a", target="item:x", key="k"))
    again = _observe(store, Interaction(actor="user:a", target="item:x", key="k"))
    assert first == again
    assert _count(store, interactions) == 1
    assert _count(store, edges) == 2


def test_the_same_key_twice_in_one_batch_is_stored_once(store):
    item = Interaction(actor="user:a", target="item:x", key="k")
    ids = _observe(store, item, item)
    assert ids[0] == ids[1]
    assert _count(store, interactions) == 1


def test_keys_of_other_actors_and_tenants_do_not_collide(store):
    _observe(store, Interaction(actor="user:a", key="k"), Interaction(actor="user:b", key="k"))
    _observe(store, Interaction(actor="user:a", key="k"), tenant="other")
    assert _count(store, interactions) == 3


def test_work_of_one_entity_is_one_row_with_a_count(store):
    _observe(store, *[Interaction(actor="user:a", target=f"item:{n}") for n in range(5)])
    _observe(store, Interaction(actor="user:a", target="item:9"), Interaction(actor="user:b", target="item:9"))
    with store.database.read() as connection:
        pending = sorted(connection.execute(select(work.c.pending)).scalars())
    assert pending == [1, 6]
    assert _count(store, outbox) == 7


def test_a_failed_batch_leaves_nothing_behind(store):
    try:
        with store.database.write() as connection:
            writer.observe(connection, store.adjacency, "acme", [Interaction(actor="user:a", target="item:x")], 1)
            raise RuntimeError("the caller failed before the commit")
    except RuntimeError:
        pass
    assert [_count(store, table) for table in (interactions, edges, outbox, work)] == [0, 0, 0, 0]


def test_hundreds_of_keys_of_hundreds_of_actors_are_found_again(store):
    batch = [Interaction(actor=f"user:{n}", target="item:x", key=f"k{n}") for n in range(900)]
    assert _observe(store, *batch) == _observe(store, *batch)
    assert _count(store, interactions) == 900
