"""The report in a real browser: Qt's Chromium. `make test-browser` fetches it and fails without it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from collab_layer.bench.page import page
from collab_layer.bench.report import Report, Row
from collab_layer.bench.runs import load_run

pytestmark = pytest.mark.browser

HOSTILE = (
    "x</title><script>window.touched=1</script><img src=//evil.test/a.png onerror='window.touched=1'>\"&{{ 7 * 7 }}"
)
RUSSIAN = "Общая память отдела поддержки, Щёкино"
LONG = f"задачи.rnd400.{'ЩЖШМ' * 20}.harm"
ROWS = (
    Row("ml1m.pop9.ours.lift", 0.63, 0.52, 0.75).against(">=", 0.45),
    Row(f"{RUSSIAN}.lift", -0.2, -0.4, 0.1),
    Row(f"{HOSTILE}.harm", 0.1, 0.05, 0.2).against("<=", 0.05),
    Row(LONG, 0.3, 0.2, 0.4),
    *(Row(f"ml1m.pop9.ours.lift_{third}_activity", 0.3, 0.1, 0.5) for third in ("low", "mid", "high")),
    *(Row(f"tickets.{arm}.read_p50_ms", 12.0, unit="ms") for arm in ("own", "ours", "mem0")),
    *(Row(f"tickets.{arm}.model_calls", 0.0, unit="calls") for arm in ("own", "ours", "mem0")),
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    run = Report(f"collab bench {HOSTILE}", "ab" * 32, 7, "hashing-512-v1", ROWS).to_json()
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    (folder / "отчёт.html").write_text(page([load_run(folder / "run.json")]), encoding="utf-8")
    return folder / "отчёт.html"


def seen(report: Path, scheme: str, width: int = 1200) -> dict[str, Any]:
    look = Path(__file__).with_name("look.py")
    command = [os.environ["COLLAB_TEST_BROWSER"], str(look), str(report), scheme, str(width)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def by_day(report: Path) -> dict[str, Any]:
    return seen(report, "light")


@pytest.fixture(scope="module")
def by_night(report: Path) -> dict[str, Any]:
    return seen(report, "dark")


def test_the_page_opens_and_asks_for_nothing_but_itself(report: Path, by_day: dict[str, Any]) -> None:
    assert by_day["title"] == "collab bench"
    assert len(by_day["asked"]) == 1
    assert by_day["asked"][0].startswith("file:")


def test_hostile_names_are_words(by_day: dict[str, Any]) -> None:
    assert (by_day["scripts"], by_day["touched"]) == (0, "undefined")
    assert f"{HOSTILE}.harm" in by_day["names"]
    assert f"collab bench {HOSTILE}" in by_day["names"]


def test_russian_names_are_shown_whole_in_the_table_and_fit_the_drawings(by_day: dict[str, Any]) -> None:
    assert {f"{RUSSIAN}.lift", LONG} <= set(by_day["names"])
    assert any(text["text"] == f"{RUSSIAN}.lift" for text in by_day["texts"])
    assert [text["text"] for text in by_day["texts"] if not text["inside"]] == []
    assert all(by_day["labels"]), "a name runs into the marks"


def test_lift_harm_terciles_and_cost_are_drawn(by_day: dict[str, Any]) -> None:
    assert by_day["drawings"] == 4
    assert len(by_day["marks"]) == len(ROWS) - 3  # nothing to see where no model is asked
    assert json.loads(by_day["behind"])[0]["data_sha256"] == "ab" * 32


def test_it_is_light_by_day_and_dark_by_night(by_day: dict[str, Any], by_night: dict[str, Any]) -> None:
    assert (by_day["dark"], by_night["dark"]) == (False, True)
    assert brightness(by_day["paper"]) > 200 > 60 > brightness(by_day["text"])
    assert brightness(by_night["paper"]) < 60 < 200 < brightness(by_night["text"])
    assert set(by_day["marks"]).isdisjoint(by_night["marks"])


def test_a_narrow_window_needs_no_sideways_scrolling(report: Path) -> None:
    assert seen(report, "light", 700)["wide"] <= 0


def brightness(colour: str) -> float:
    return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")) / 3
