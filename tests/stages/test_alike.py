"""Two texts are one statement only where nothing that could matter differs."""

import pytest

from collab_layer.stages.alike import alike, words


def same(one: str, other: str) -> bool:
    return alike(words(one), words(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Dune is the best desert book", "DUNE is the best desert book!"),
        ("Pinned the module and ran the tests", "pinned modules, and ran tests"),
        ("Перезапустил сервер после обновления", "перезапустила серверы после обновления"),
        ("Ещё раз: ёлка упала", "еще раз — елка упала"),
        ("foo_bar is set in go.mod", "foo bar is set in go mod"),
        ("It just works", "It works"),
    ],
)
def test_case_punctuation_inflection_and_fillers_do_not_count(one, other):
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("user:a loves Dune", "user:a hates Dune"),
        ("Pin the version", "Do not pin the version"),
        ("Pin the version", "Never pin the version"),
        ("Люблю Дюну", "Не люблю Дюну"),
        ("Есть доступ к базе", "Нет доступа к базе"),
        ("Works with go 1.21", "Works with go 1.22"),
        ("Needs go >= 1.2", "Needs go <= 1.2"),
        ("Heat it to 5 degrees", "Heat it to -5 degrees"),
        ("Restart before the update", "Restart after the update"),
        ("Switch it on", "Switch it off"),
        ("Written in C", "Written in C++"),
        ("Plan A works", "Plan works"),
        ("Dune 👍", "Dune 👎"),
        ("a == b holds", "a != b holds"),
        ("The dog bit the man", "The man bit the dog"),
        ("You may use my key", "You may use your key"),
        ("Is Dune good?", "Is Dune good."),
        ("Выше нормы", "Ниже нормы"),
    ],
)
def test_a_word_a_number_or_a_sign_makes_another_statement(one, other):
    assert not same(one, other)


def test_a_text_without_words_is_like_no_other():
    assert not same("...", "...")
    assert not same("", "")


@pytest.mark.parametrize("length", [56, 80, 300])
def test_a_clause_may_stand_elsewhere_in_a_long_text_but_no_two_words_change_places(length):
    text = tuple(f"w{n}" for n in range(length))
    moved = (*text[15:], *text[:15])
    assert alike(text, moved)
    for first, second in ((0, length - 1), (3, 30), (3, 5)):
        swapped = list(text)
        swapped[first], swapped[second] = swapped[second], swapped[first]
        assert not alike(text, tuple(swapped))


@pytest.mark.parametrize("length", range(2, 56))
def test_no_two_words_of_a_text_as_long_as_a_lesson_may_change_places(length):
    text = tuple(f"w{n}" for n in range(length))
    for first in range(length):
        for second in range(first + 1, length):
            swapped = list(text)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            assert not alike(text, tuple(swapped))
