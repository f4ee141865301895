"""A text says no more than what it rests on."""

from __future__ import annotations

import pytest

from collab_layer.stages.asked.backing import backed

NOTE = "The staging VPN drops after 30 minutes; renewed the client certificate with go.mod v0.23 and it works"
NOTE_RU = "Тестовый VPN обрывается через 30 минут, помогло обновить сертификат клиента"


@pytest.mark.parametrize(
    "text",
    [
        "Renewing client certificates works for the VPN in staging",
        "Noted often: the VPN drops after 30 minutes",
        "go.mod v0.23 works",
        "The staging-VPN drops",
    ],
)
def test_the_same_words_in_another_form_pass(text):
    assert backed(text, [NOTE])


@pytest.mark.parametrize(
    "text",
    [
        "Тестовые VPN обрываются через 30 минут",
        "Отмечено часто: помогло обновить сертификаты клиентов",
    ],
)
def test_the_same_words_in_another_form_pass_in_russian(text):
    assert backed(text, [NOTE_RU])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Maria renewed the client certificate", "a name"),
        ("The VPN drops after 45 minutes", "a number"),
        ("go.mod v0.24 works", "a version"),
        ("The VPN drops after -30 minutes", "a sign"),
        ("Restart the VPN", "a word"),
        ("The VPN does not drop", "a negation"),
        ("VPN обрывается", "a word of another language"),
    ],
)
def test_more_than_that_is_refused(text, why):
    assert not backed(text, [NOTE]), why


@pytest.mark.parametrize("text", ["Тестовый VPN обрывается у Маши", "Тестовый VPN не обрывается", "VPN через 40 минут"])
def test_more_than_that_is_refused_in_russian(text):
    assert not backed(text, [NOTE_RU])


def test_every_source_cited_counts_and_no_other():
    assert backed("The VPN drops; the printer hangs", [NOTE, "The printer hangs"])
    assert not backed("The VPN drops; the printer hangs", [NOTE])


def test_a_negation_of_the_source_stays():
    assert backed("The printer did not hang", ["The printer did not hang today"])
