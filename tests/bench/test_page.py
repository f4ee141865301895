"""Runs become a page and a table; nothing in a run becomes markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from collab_layer.bench.leaderboard import Entry, entries, standings
from collab_layer.bench.page import page
from collab_layer.bench.report import Report, Row
from collab_layer.bench.runs import load_run
from collab_layer.errors import DataSetError
from collab_layer.surface.cli.main import main

HOSTILE = "x</title><script>alert(1)</script><svg onload='x'>\"&{{ 7 * 7 }}"


def run_file(folder: Path, *rows: Row, name: str = "run.json", command: str = "collab bench tasks tickets") -> Path:
    report = Report(command, "ab" * 32, 7, "hashing-512-v1", rows)
    (folder / name).write_text(json.dumps(report.to_json()), encoding="utf-8")
    return folder / name


def tickets(arm: str, gained: float, lost: float, leakage: float | None = 0.0) -> list[Row]:
    rows = [Row(f"tickets.rnd400.{arm}.help", gained), Row(f"tickets.rnd400.{arm}.harm", lost)]
    return rows if leakage is None else [*rows, Row(f"tickets.rnd.{arm}.leakage", leakage)]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_a_page_has_every_figure_its_interval_and_its_source(tmp_path: Path) -> None:
    rows = (
        Row("a.pop9.ours.lift", 0.47, 0.35, 0.6).against(">=", 0.45, positive=True),
        Row("a.pop9.ours.harm", 0.074, 0.05, 0.09).against("<=", 0.06),
        Row("a.low.ours.h1", 0.5),
        Row("run.seconds", 12.5, unit="s"),
        Row("a.pop9.ours.h1", float("nan")),
    )
    text = page([load_run(run_file(tmp_path, *rows))])
    for said in ("0.47", "0.35 to 0.6", "ab" * 32, "<svg", "Lift", "Harm", "Terciles", "Cost", "not finite"):
        assert said in text
    assert "1 of 2 bars met" in text
    assert ">7<" in text


class Boxes(HTMLParser):
    """What a browser would lay out: every drawing, its marks, and whether each element is closed."""

    VOID = frozenset(("meta", "br", "hr", "line", "circle"))

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.drawings: list[dict[str, Any]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        if tag == "svg":
            self.drawings.append({"label": held["aria-label"], "box": held["viewbox"], "bars": [], "dots": []})
        elif tag == "line" and held.get("class") != "zero":
            self.drawings[-1]["bars"].append((float(held["x1"]), float(held["x2"]), float(held["y1"])))
        elif tag == "circle":
            self.drawings[-1]["dots"].append((float(held["cx"]), float(held["cy"])))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "pre":
            self.text += data


LIFT_ROWS = (
    Row("ml1m.pop9.ours.lift", 0.47, 0.35, 0.6),
    Row("ml1m.pop9.ours.minus_best", 0.03, -0.01, 0.06, "difference to ease"),
    Row("ml1m.pop9.ours.harm", 0.07, 0.05, 0.09),
    Row("ml1m.pop9.ours.worse", 0.2, 0.18, 0.22),
    *(Row(f"ml1m.pop9.ours.lift_{third}_activity", 0.3, 0.1, 0.5) for third in ("low", "mid", "high")),
    Row("run.seconds", 900.0, unit="s"),
    Row("run.peak_rss_mb", 512.0, unit="MB"),
)


def test_lift_harm_terciles_and_cost_are_each_drawn_to_scale(tmp_path: Path) -> None:
    boxes = Boxes()
    boxes.feed(page([load_run(run_file(tmp_path, *LIFT_ROWS))]))
    assert boxes.open == [], "every element is closed"
    parts = {drawing["label"].partition(",")[0] for drawing in boxes.drawings}
    assert parts == {"Lift", "Harm", "Terciles", "Cost"}
    assert sum(len(drawing["dots"]) for drawing in boxes.drawings) == len(LIFT_ROWS)
    for drawing in boxes.drawings:
        _, _, width, height = (float(number) for number in drawing["box"].split())
        assert len(drawing["bars"]) == len(drawing["dots"])
        for (low, high, y), (x, at) in zip(drawing["bars"], drawing["dots"], strict=True):
            assert 0 <= low <= x <= high <= width
            assert 0 < y == at < height
    terciles = next(one for one in boxes.drawings if one["label"].startswith("Terciles"))
    assert len(terciles["dots"]) == 3


def test_the_runs_behind_the_page_are_in_it_and_make_the_same_page(tmp_path: Path) -> None:
    path = run_file(tmp_path, *LIFT_ROWS, Row(HOSTILE, 0.1))
    text = page([load_run(path)])
    boxes = Boxes()
    boxes.feed(text)
    [behind] = json.loads(boxes.text)
    assert behind["data_sha256"] == "ab" * 32
    (tmp_path / "again.json").write_text(json.dumps(behind), encoding="utf-8")
    assert page([load_run(tmp_path / "again.json")]) == text


def test_a_hostile_name_does_not_become_markup(tmp_path: Path) -> None:
    path = run_file(
        tmp_path, Row(f"{HOSTILE}.lift", 0.5, 0.4, 0.6), Row("a.lift", 0.1, unit=HOSTILE[:90]), command=HOSTILE
    )
    parser = Tags()
    parser.feed(page([load_run(path)]))
    tags = {tag for tag, _ in parser.seen}
    assert "script" not in tags
    assert not any(name.startswith("on") for _, held in parser.seen for name in held)
    assert "49" not in page([load_run(path)])


def test_a_page_needs_no_network(tmp_path: Path) -> None:
    text = page([load_run(run_file(tmp_path, Row("a.lift", 0.5, 0.4, 0.6)))])
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # the name of a format; nothing is fetched from it
    assert "default-src 'none'" in text


def test_every_colour_can_be_read_by_day_and_by_night(tmp_path: Path) -> None:
    text = page([load_run(run_file(tmp_path, Row("a.lift", 0.5, 0.4, 0.6)))])
    styles = text[text.index("<style>") : text.index("</style>")]
    themes = [dict(re.findall(r"--(\w+): (#\w{6});", part)) for part in styles.split("prefers-color-scheme: dark")]
    assert len(themes) == 2
    assert themes[0].keys() == themes[1].keys()
    for theme in themes:
        for name, least in {"ink": 7.0, "miss": 4.5, "met": 4.5, "mark": 3.0, "zero": 3.0}.items():
            assert contrast(theme[name], theme["paper"]) >= least, name
    assert not re.findall(r"#\w{3,6}\b", text[text.index("</style>") :]), "no colour that knows one theme only"


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"command": "x", "rows": []}', '"text"', ""])
def test_what_is_no_run_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "no.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataSetError, match=r"no\.json"):
        load_run(tmp_path / "no.json")


def test_who_leaks_has_no_rank(tmp_path: Path) -> None:
    path = run_file(
        tmp_path, *tickets("ours", 0.2, 0.02), *tickets("mine", 0.4, 0.01, 0.02), *tickets("quiet", 0.3, 0.2)
    )
    found = {one.entry.system: one for one in standings(entries([path]))}
    assert (found["ours"].rank, found["quiet"].rank, found["mine"].rank) == (1, 2, None)
    assert found["ours"].entry.net == pytest.approx(0.16)
    assert "leakage" in found["mine"].why


def test_leakage_that_was_not_measured_gives_no_rank(tmp_path: Path) -> None:
    assert standings(entries([run_file(tmp_path, *tickets("ours", 0.2, 0.0, None))]))[0].rank is None


def test_entries_of_other_data_are_not_compared(tmp_path: Path) -> None:
    held: dict[str, Any] = {
        "system": "a",
        "task": "t",
        "seed": 0,
        "embedder": "e",
        "help": 0.1,
        "harm": 0,
        "leakage": 0,
    }
    for at, digest in enumerate(("a" * 64, "b" * 64)):
        (tmp_path / f"{at}.json").write_text(json.dumps({**held, "data_sha256": digest}), encoding="utf-8")
    assert [one.rank for one in standings(entries([tmp_path / "0.json", tmp_path / "1.json"]))] == [1, 1]


@pytest.mark.parametrize("change", [{"help": 1.5}, {"harm": -1}, {"format": "other"}, {"extra": 1}, {"system": ""}])
def test_a_bad_entry_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    good = Entry(system="a", task="t", data_sha256="c" * 64, seed=0, embedder="e", help=0.1, harm=0.0)
    (tmp_path / "bad.json").write_text(json.dumps({**good.model_dump(), **change}), encoding="utf-8")
    with pytest.raises(DataSetError, match=r"bad\.json"):
        entries([tmp_path / "bad.json"])


def test_a_run_that_compares_nobody_has_no_entry(tmp_path: Path) -> None:
    with pytest.raises(DataSetError, match="required"):
        entries([run_file(tmp_path, Row("a.h1", 0.5))])


def test_the_command_line_writes_the_page_and_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run_file(tmp_path, *tickets("ours", 0.2, 0.02))
    assert main(["bench", "report", str(path), "--html", str(tmp_path / "out.html")]) == 0
    assert "<svg" in (tmp_path / "out.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["bench", "leaderboard", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["rank"] == 1
    assert main(["bench", "report", str(path), "--html", str(tmp_path / "no" / "out.html")]) == 2
    assert main(["bench", "leaderboard", str(tmp_path / "nothing.json")]) == 2
    assert main(["bench", "tasks", "--json"]) == 0
    assert main(["bench", "tasks", "tickets"]) == 2
