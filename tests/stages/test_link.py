from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.stages.link import MAX_TOPICS, _slug_of_two, _word, known, slug, topics
from collab_layer.stages.tokens import fold
from collab_layer.types.entity import Entity


def named(*names: str) -> dict[str, Entity]:
    return {fold(name): Entity("item", f"i{number}") for number, name in enumerate(names)}


def slugs(text: str) -> list[str]:
    return [entity.id for entity, _ in topics(text)]


def test_inflections_and_plurals_meet_in_one_slug():
    assert slug("Go modules") == slug("Go module") == "go-modul"
    assert slug("модули Go") == slug("модулей Go")
    assert slug("!!!") == ""


def test_the_longest_known_name_wins():
    names = named("The Lord of the Rings", "The Lord of the Rings: The Two Towers", "Towers")
    assert known("I saw the lord of the rings - the two towers again", names) == [
        (names[fold("The Lord of the Rings: The Two Towers")], "the lord of the rings - the two towers")
    ]


def test_a_known_name_is_found_in_another_case_ending():
    names = named("Дюна", "Алиса")
    assert [surface for _, surface in known("Вчера смотрел Дюну с Алисой", names)] == ["Дюну", "Алисой"]


def test_a_stop_word_is_a_name_only_with_a_capital_inside_a_sentence():
    names = named("It")
    assert known("it was raining. It was late", names) == []
    assert known("we watched It yesterday", names) != []


def test_each_known_name_is_linked_once():
    names = named("go.mod")
    assert len(known("go.mod, Go mod, go-mod", names)) == 1


def test_the_work_does_not_grow_with_the_number_of_names():
    class Counting(dict):
        asked = 0

        def __contains__(self, key):
            type(self).asked += 1
            return super().__contains__(key)

    text = "pinned the go module versions in go.mod"
    known(text, Counting(named("go.mod")))
    few, Counting.asked = Counting.asked, 0
    known(text, Counting(named("go.mod", *(f"name {number}" for number in range(5_000)))))
    assert few == Counting.asked


@pytest.mark.parametrize(
    "text", ["He likes «Дюна» most", "He likes “Blade Runner” most", 'He likes "Blade Runner" most']
)
def test_quoted_titles_come_first(text):
    assert topics(text)[0][1] in ("Дюна", "Blade Runner")


def test_identifiers_codes_and_the_last_parts_of_paths_are_topics_and_versions_are_not():
    found = slugs(
        "ModuleNotFoundError ERR_CONN in src/app/main.go and /etc/nginx/nginx.conf, CVE-2024-12345, v1.2.3 or 2.10"
    )
    assert {"modulenotfounderror", "err-conn", "main-go", "nginx-conf", "cve-2024-12345"} <= set(found)
    assert not any(key.startswith(("v1", "2-10", "src", "etc")) for key in found)


def test_addresses_long_numbers_and_digests_are_never_topics():
    found = " ".join(
        slugs("Mail bob@example.com or https://shop.example/x, order 1234567890, key 9f86d081884c7d659a2f")
    )
    assert not any(part in found for part in ("bob", "example", "shop", "1234567890", "9f86"))


def test_capitalised_names_count_inside_a_sentence_and_not_for_opening_it():
    english = topics("Yesterday Alice met Bob Marley in Paris. Docker helped")[:3]
    assert [surface for _, surface in english] == ["Alice", "Bob Marley", "Paris"]
    russian = topics("Вчера Алиса встретила Боба в Москве. Сборка упала")[:3]
    assert [surface for _, surface in russian] == ["Алиса", "Боба", "Москве"]


def test_a_text_in_capitals_is_not_full_of_names():
    assert slugs("RESET THE ROUTER NOW") == slugs("reset the router now")


def test_two_owners_meet_in_words_alone():
    one = set(slugs("pinned the go module versions after a checksum mismatch"))
    other = set(slugs("a checksum mismatch broke the modules of our build"))
    assert {"checksum-mismatch", "modul"} <= one & other


def test_russian_owners_meet_in_words_alone():
    one, other = set(slugs("закрепил версии модулей Go")), set(slugs("конфликт: модули Go разошлись"))
    assert "модул-go" in one & other


def test_a_topic_is_named_once_with_its_first_surface():
    found = topics("we moved Go modules, then the Go module broke")
    assert [surface for entity, surface in found if entity.id == "go-modul"] == ["Go modules"]


def test_texts_without_content_have_no_topics():
    assert topics("") == topics("!!! ???") == topics("it is") == topics("12345 67") == []


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=300), st.integers(1, MAX_TOPICS))
def test_any_text_gives_few_valid_topics_again_and_again(text, limit):
    found = topics(text, limit=limit)
    assert found == topics(text, limit=limit)
    assert len({entity for entity, _ in found}) == len(found) <= limit
    assert all(entity.kind == "topic" and surface.strip() for entity, surface in found)


@pytest.mark.parametrize("unit", ["a/", '"a', "A a ", "a.", "a@", "Aa", "of ", "/", "a-", "«", "A of "])
def test_long_hostile_text_is_read_in_bounded_time(unit):
    assert len(topics(unit * (100_000 // len(unit)))) <= MAX_TOPICS


PARTS = ("go", "Modules", "the", "in", "running", "модулями", "в", "don't", "C++", "V1", "errors")
SPELLED = st.builds(str.join, st.sampled_from("-._:"), st.lists(st.sampled_from(PARTS), min_size=1, max_size=8))


@settings(deadline=None)
@given(SPELLED, SPELLED)
def test_two_words_have_the_slug_of_both_with_a_gap_between(first, second):
    assert _slug_of_two(_word(first), _word(second)) == slug(f"{first} {second}")
