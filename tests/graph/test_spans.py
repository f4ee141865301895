"""What is over counts nowhere in the present, however edges were packed; the past is as it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from collab_layer.graph import spans, writer
from collab_layer.graph.adjacency import Adjacency, Kind, pick
from collab_layer.graph.ids import number_of
from collab_layer.graph.names import find
from collab_layer.graph.store import GraphStore
from collab_layer.graph.tables import edges, interactions
from collab_layer.types.entity import MemoryRef
from collab_layer.types.interaction import Interaction
from collab_layer.types.time import micros

START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = micros(START + timedelta(days=500))
STEP = st.tuples(
    st.sampled_from(["do", "do", "version", "replace", "join", "leave"]),
    st.integers(0, 2),
    st.integers(0, 3),
    st.integers(0, 400),
    st.booleans(),
)


def tell(store, *batch):
    with store.database.write() as connection:
        return writer.observe(connection, store.adjacency, "acme", batch, NOW)


def read(store, name, *kinds, adjacency=None, as_of=None):
    with store.database.read() as connection:
        node = find(connection, "acme", [name])[name]
        found = (adjacency or store.adjacency).edges(connection, "acme", [node], as_of=as_of, now=NOW)[node]
        edges_ = pick(found, *kinds)
    return {int(id_): (float(w), int(c), int(last)) for id_, w, c, last in zip(*[getattr(edges_, a) for a in
            ("ids", "weight", "count", "last")], strict=True)}  # fmt: skip


def recomputed(store, as_of=None):
    """(actor, other, kind) -> (weight, count, last), from the interactions alone."""
    with store.database.read() as connection:
        rows = connection.execute(select(interactions).order_by(interactions.c.at, interactions.c.id)).all()
    found: dict = {}
    for row in rows:
        after = [o.at for o in rows if o.replaces == row.id]
        if row.native_id is not None:
            same = [o for o in rows if (o.native_id, o.actor) == (row.native_id, row.actor)]
            after += [o.at for o in same if (o.at, o.id) > (row.at, row.id)]
        if row.verb == "joined":
            after = [
                o.at for o in rows if (o.verb, o.actor, o.target) == ("left", row.actor, row.target) and o.at >= row.at
            ]
        held = not after if as_of is None else row.at <= as_of < min([*after, 2**62])
        if row.target is None or row.verb == "left" or not held:
            continue
        key = (row.actor, row.target, Kind.MEMBER_OF if row.verb == "joined" else Kind.INTERACTED)
        weight, count, last = found.get(key, (0.0, 0, 0))
        found[key] = (weight + row.weight, count + 1, max(last, row.at))
    return found


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, min_size=1, max_size=30))
def test_edges_are_those_of_what_holds_whenever_they_were_packed(tmp_path_factory, steps):
    store = GraphStore.open(str(tmp_path_factory.mktemp("spans") / "g.db"), embedder="test", dim=8)
    said: dict[int, list[tuple[str, int]]] = {}
    try:
        for n, (kind, who, thing, days, fold) in enumerate(steps):
            at = START + timedelta(days=days)
            parts: dict = {"actor": f"user:{who}", "target": f"item:{thing}", "at": at, "weight": 0.1 + thing}
            earlier = [id_ for id_, when in said.get(who, []) if when <= days]
            if kind in ("join", "leave"):
                parts |= {"target": f"team:{thing % 2}", "verb": "joined" if kind == "join" else "left"}
            elif kind == "version":
                parts |= {"ref": MemoryRef(backend="mem", id=str(thing), version=str(n))}
            elif kind == "replace" and earlier:
                parts |= {"replaces": earlier[thing % len(earlier)]}
            [id_] = tell(store, Interaction(**parts))
            if kind in ("do", "replace"):
                said.setdefault(who, []).append((id_, days))
            if fold:
                with store.database.write() as connection:
                    nodes = list(
                        find(connection, "acme", [f"user:{who}", f"item:{thing}", f"team:{thing % 2}"]).values()
                    )
                    store.adjacency.fold(connection, "acme", nodes, now=NOW)
        _compare(store, None)
        _compare(store, micros(START + timedelta(days=200)))
    finally:
        store.close()


def _compare(store, as_of):
    expected = recomputed(store, as_of)
    with store.database.read() as connection:
        ids = find(connection, "acme", [f"{k}:{n}" for k in ("user", "item", "team") for n in range(4)])
    for name, id_ in ids.items():
        for kind, back in ((Kind.INTERACTED, Kind.HELD_BY), (Kind.MEMBER_OF, Kind.HAS_MEMBER)):
            for adjacency in (store.adjacency, Adjacency()):
                forth = read(store, name, kind, adjacency=adjacency, as_of=as_of)
                assert _near(
                    forth, {other: v for (actor, other, k), v in expected.items() if (actor, k) == (id_, kind)}
                )
                home = read(store, name, back, adjacency=adjacency, as_of=as_of)
                assert _near(home, {actor: v for (actor, other, k), v in expected.items() if (other, k) == (id_, kind)})


def _near(one, other):
    return one.keys() == other.keys() and all(
        abs(one[key][0] - other[key][0]) < 1e-9 and one[key][1:] == other[key][1:] for key in one
    )


def test_a_hub_is_not_packed_anew_for_one_edge_that_ends(store):
    first = tell(store, *[Interaction(actor=f"user:{n}", target="item:hub", at=START) for n in range(300)])
    with store.database.write() as connection:
        store.adjacency.fold(connection, "acme", list(find(connection, "acme", ["item:hub"]).values()), now=NOW)
    tell(store, Interaction(actor="user:7", verb="said", text="no more", replaces=first[7]))
    with store.database.read() as connection:
        hub = find(connection, "acme", ["item:hub"])["item:hub"]
        unpacked = connection.execute(
            select(edges.c.id).where(edges.c.src == hub, edges.c.folded == False)  # noqa: E712  a column
        ).all()
    assert unpacked == []
    assert len(read(store, "item:hub", Kind.HELD_BY)) == 299


def test_a_membership_ends_with_the_first_leaving_after_it_told_earlier_or_later(store):
    def days(n):
        return START + timedelta(days=n)

    tell(store, Interaction(actor="user:a", target="team:s", verb="left", at=days(10)))
    tell(store, Interaction(actor="user:a", target="team:s", verb="joined", at=days(1)))
    tell(store, Interaction(actor="user:a", target="team:s", verb="joined", at=days(20)))
    assert len(read(store, "user:a", Kind.MEMBER_OF)) == 1
    assert [len(read(store, "team:s", Kind.HAS_MEMBER, as_of=micros(days(n)))) for n in (0, 5, 15, 25)] == [0, 1, 0, 1]


def test_the_end_of_a_version_is_the_same_in_any_order_of_telling(store):
    ends = []
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]):
        name = f"user:{order}".replace(" ", "").replace(",", "-").replace("[", "").replace("]", "")
        ids = {}
        for n in order:
            ref = MemoryRef(backend="mem", id=name, version=str(n))
            [ids[n]] = tell(store, Interaction(actor=name, ref=ref, at=START + timedelta(days=n)))
        with store.database.read() as connection:
            numbers = {n: number_of(id_) for n, id_ in ids.items()}
            found = spans.ends(connection, "acme", numbers.values())
        ends.append([found[numbers[n]] for n in range(3)])
    assert all(one == ends[0] for one in ends)
    assert ends[0][:2] == [micros(START + timedelta(days=1)), micros(START + timedelta(days=2))]
