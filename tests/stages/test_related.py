"""Items that share rare links or words point to each other, to a few only."""

from collab_layer.stages.related import Mention, related


def mention(id_: str, text: str, *links: int) -> Mention:
    return Mention(id_, frozenset(links), text)


def test_items_with_a_rare_word_or_link_in_common_are_related_both_ways():
    found = related(
        [
            mention("d1", "Okta certificate expired", 1),
            mention("d2", "new Okta certificate", 1),
            mention("d3", "Bread with seeds", 2),
        ]
    )
    assert set(found) == {("d1", "d2"), ("d2", "d1")}
    assert all(0 < weight <= 1 for weight in found.values())


def test_the_same_thing_said_twice_weighs_one():
    assert set(related([mention("d1", "Dune is long"), mention("d2", "dune is long")]).values()) == {1.0}


def test_russian_words_relate_by_their_stems():
    assert ("d1", "d2") in related([mention("d1", "Сертификат истёк"), mention("d2", "истекли сертификаты")])


def test_each_points_to_a_few_and_ties_go_to_the_smaller_id():
    same = [mention(f"d{n}", "Dune is long") for n in range(9)]
    found = related(same, most=2)
    assert {other for item, other in found if item == "d5"} == {"d0", "d1"}
    assert len(found) == 18


def test_what_everybody_mentions_relates_nobody():
    many = [mention(f"d{n}", f"Dune number{n}word", 7) for n in range(100)]
    assert related(many, crowd=64) == {}


def test_none_are_related_where_there_are_none():
    assert related([]) == {}
    assert related([mention("d1", "alone")]) == {}
    assert related([mention("d1", ""), mention("d2", "")]) == {}


def test_the_order_of_the_items_does_not_count():
    items = [mention(f"d{n}", f"Dune chapter{n % 3}x", n % 4) for n in range(20)]
    assert related(items) == related(items[::-1])
