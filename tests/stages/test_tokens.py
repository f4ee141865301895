from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collab_layer.stages import tokens
from collab_layer.stages.tokens import MAX_TERMS, fold, hashed, sentences, stem, terms


def test_english_and_russian_inflections_meet():
    assert terms("conflicts of modules") == terms("conflict of module")
    assert terms("модулями и конфликтов") == terms("модули, конфликты")
    assert terms("Ёлка") == terms("елки")


def test_script_decides_the_language_word_by_word():
    assert terms("закрепил версии Go modules") == [stem("закрепил"), stem("версии"), "go", "modul"]


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("see go.mod", "go.mod", {"go", "mod"}),
        ("got ERR_CONN", "err_conn", {"err", "conn"}),
        ("a foo-bar", "foo-bar", {"foo", "bar"}),
        ("ModuleNotFoundError!", "modulenotfounderror", {"modul", "found", "error"}),
        ("веб-серверы", "веб-сервер", {"веб", "сервер"}),
    ],
)
def test_identifiers_stay_whole_and_give_their_parts(text, whole, parts):
    found = terms(text)
    assert whole in found
    assert parts <= set(found)


def test_versions_stay_whole_and_give_no_stray_numbers():
    assert terms("v1.2.3") == ["v1.2.3"]


def test_languages_with_signs_are_told_apart():
    assert terms("C++ C# C") == ["c++", "c#", "c"]


def test_stop_words_give_no_terms_and_apostrophes_do_not_matter():
    assert terms("it is what they don’t; и это не то") == []
    assert terms("the user’s") == terms("users")


def test_stress_marks_soft_hyphens_and_compatibility_forms_do_not_hide_a_word():
    assert terms("за\u0301мок soft\u00adware ﬁle") == terms("замок software file")


def test_repeats_are_kept_and_the_number_of_terms_is_capped():
    assert terms("go go go").count("go") == 3
    assert len(terms("word " * 20_000)) == MAX_TERMS


def test_threads_do_not_disturb_each_other():
    words = [
        f"{root}{end}" for root in ("modul", "connect", "version", "nation") for end in ("es", "ing", "ed", "ally")
    ]
    alone = [tokens.stem.__wrapped__(word) for word in words]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(tokens.stem.__wrapped__, words * 50))
    assert together == alone * 50


def test_a_name_is_found_however_it_is_written():
    assert fold("go.mod") == fold("Go Mod") == fold("go-mod")
    assert fold("Schindler's List") == fold("schindlers list")
    assert fold("Дюна") == fold("дюну")
    assert fold("Alien") != fold("Aliens")
    assert fold("C++") != fold("C#")
    assert fold("???") == "???"


def test_sentences_end_at_stops_and_lines_but_not_after_abbreviations():
    assert list(sentences("We use e.g. Go. It works! Next\nline v1.2 ok")) == [
        "We use e.g. Go.",
        "It works!",
        "Next",
        "line v1.2 ok",
    ]
    assert list(sentences("Это т.е. Строка. Ещё одна?")) == ["Это т.е. Строка.", "Ещё одна?"]
    assert list(sentences(" \n ")) == []


def test_keys_of_terms_are_the_same_in_every_process_and_fit_a_signed_column():
    assert hashed("модул") == hashed.__wrapped__("модул")
    assert all(0 <= hashed(term) < 2**63 for term in ("go", "модул", "", "x" * 64))
    code = "from collab_layer.stages.tokens import hashed; print(hashed('go'))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(other.stdout) == hashed("go")


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=400))
def test_any_text_gives_the_same_terms_again_without_stop_words_or_blanks(text):
    found = terms(text)
    assert found == terms(text)
    assert all(term and not term.isspace() and term not in ("the", "это") for term in found)
    assert fold(fold(text)).split() == fold(fold(fold(text))).split()


@pytest.mark.parametrize("unit", ["a.", "a-", "'a", "слово ", "x", ". ", "A\n", "\u0301"])
def test_a_million_characters_are_cut_before_work_is_done(unit):
    huge = unit * (1_000_000 // len(unit))
    assert len(terms(huge)) <= MAX_TERMS
    assert sum(map(len, sentences(huge))) <= tokens.MAX_CHARS
