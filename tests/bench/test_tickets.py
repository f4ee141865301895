"""Tickets: labels from what was done, splits without the case in them, bad data refused in a sentence."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collab_layer.bench import tickets
from collab_layer.bench.options import Options
from collab_layer.bench.stores import Item
from collab_layer.bench.tickets_data import ARCHIVE, CUSTOM, load_tickets
from collab_layer.bench.tickets_scores import FIGURES, average_precision, figures, labels_of
from collab_layer.bench.tickets_split import FOLDS, LAYOUTS, OWNERS, Record, deal
from collab_layer.errors import DataSetError, InputError

PROBLEMS = ("refund for a broken blender", "cancel the trip to Denver", "exchange the blue shirt", "battery is dead")


def conversation(n: int) -> list[dict[str, Any]]:
    kind = n % 4
    calls = [
        {"name": "get_policies", "arguments": {"topic": ("refund", "cancel", "exchange", "warranty")[kind]}},
        {
            "name": "process_return" if kind else "process_refund",
            "arguments": {"reason": "defective", "confirm": True, "item_id": f"ITEM-{n}"},
            "result": {"status": "done", "restocking_fee": 5 if n % 8 > 3 else 0},
        },
    ]
    calls[0]["result"] = {"rules": {}}
    asked = f"I want a {PROBLEMS[kind]}, order ORD-{7000 + n}, it is number {n}."
    return [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": asked},
        {"role": "assistant", "content": "Done.", "tool_calls": calls},
    ]


def trajectories(count: int = 60) -> dict[str, Any]:
    folder = "datasets/train_task_trajectories"
    return {f"{folder}/support/{n}-hard_{PROBLEMS[n % 4].split()[0]}.json": conversation(n) for n in range(count)}


def pack(folder: Path, held: dict[str, Any], change: Callable[[dict[str, Any]], object] | None = None) -> Path:
    with tarfile.open(folder / ARCHIVE, "w:gz") as packed:
        for name, turns in held.items():
            value = {"conversation": turns}
            raw = json.dumps(change(value) if change else value).encode()
            member = tarfile.TarInfo(name)
            member.size = len(raw)
            packed.addfile(member, io.BytesIO(raw))
    return folder


def custom(folder: Path, rows: list[dict[str, Any]]) -> Path:
    (folder / CUSTOM).write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return folder


def a_row(n: int) -> dict[str, Any]:
    did = [["reset the profile", "no fee"], ["swap the battery"]][n % 2]
    return {"id": f"t{n}", "text": f"{PROBLEMS[n % 4]} {n}", "did": did, "scenario": [f"s{n % 4}"]}


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(DataSetError) as caught:
        load_tickets(folder)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert "\n" not in text


# -- labels -------------------------------------------------------------------------------


def test_what_was_done_comes_from_calls_and_their_results(tmp_path: Path) -> None:
    data = load_tickets(pack(tmp_path, trajectories()))
    ticket = next(one for one in data.tickets if one.id == "support/4-hard_refund")
    assert ticket.did == {"policy-refund", "process-refund-defective", "fee-restocking-fee"}


def test_ids_and_file_names_are_in_no_text(tmp_path: Path) -> None:
    for ticket in load_tickets(pack(tmp_path, trajectories())).tickets:
        assert "ORD-" not in ticket.text
        assert "hard" not in ticket.text


def test_a_preview_a_refusal_and_an_error_are_no_deed(tmp_path: Path) -> None:
    held = trajectories()
    for n, result in enumerate(({"status": "preview"}, {"status": "rejected"}, {"error": "no"})):
        call = {"name": "process_refund", "arguments": {"confirm": n > 0}, "result": result}
        held[f"datasets/train_task_trajectories/support/{n}-hard_{PROBLEMS[n].split()[0]}.json"][2]["tool_calls"] = [
            call
        ]
    by_id = {ticket.id.split("/")[1].split("-")[0]: ticket.did for ticket in load_tickets(pack(tmp_path, held)).tickets}
    assert by_id["0"] == {"no-write"}
    assert by_id["1"] == {"no-write", "refused-process-refund"}
    assert by_id["2"] == {"no-write", "error-process-refund"}


def test_an_unpacked_set_is_the_same_set(tmp_path: Path) -> None:
    packed, plain = tmp_path / "packed", tmp_path / "plain"
    packed.mkdir()
    for name, turns in trajectories().items():
        (plain / name).parent.mkdir(parents=True, exist_ok=True)
        (plain / name).write_text(json.dumps({"conversation": turns}), encoding="utf-8")
    assert load_tickets(plain) == load_tickets(pack(packed, trajectories()))


def test_a_set_of_ones_own_is_a_line_per_ticket(tmp_path: Path) -> None:
    data = load_tickets(custom(tmp_path, [a_row(n) for n in range(40)]))
    assert data.tickets[0].did == {"reset-the-profile", "no-fee"}
    assert data.name == "custom"


# -- bad data -----------------------------------------------------------------------------


def test_a_folder_of_another_set(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text("userId")
    refused(tmp_path, "no tickets", ARCHIVE)


def test_a_truncated_archive(tmp_path: Path) -> None:
    path = pack(tmp_path, trajectories()) / ARCHIVE
    path.write_bytes(path.read_bytes()[:-400])
    refused(tmp_path, ARCHIVE, "no complete tar archive")


def test_a_gzip_of_something_else(tmp_path: Path) -> None:
    (tmp_path / ARCHIVE).write_bytes(gzip.compress(b"hello"))
    refused(tmp_path, "no complete tar archive")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda value: {"messages": value["conversation"]}, ("conversation", "required")),
        (lambda value: {"conversation": value["conversation"][:1]}, ("no message of a user",)),
        (lambda value: {"conversation": value["conversation"][:2]}, ("tool_calls",)),
        (lambda value: [value], ("dictionary",)),
    ],
)
def test_a_changed_layout_is_named(tmp_path: Path, change: Any, words: tuple[str, ...]) -> None:
    refused(pack(tmp_path, trajectories(), change), *words)


def test_another_encoding(tmp_path: Path) -> None:
    (tmp_path / CUSTOM).write_bytes(json.dumps(a_row(1), ensure_ascii=False).encode("utf-16"))
    refused(tmp_path, CUSTOM, "UTF-8")


def test_broken_json_names_its_line(tmp_path: Path) -> None:
    (tmp_path / CUSTOM).write_text(json.dumps(a_row(1)) + "\n{", encoding="utf-8")
    refused(tmp_path, CUSTOM, "line 2")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"id": "t0", "text": "x", "did": ["y"]}, ("line 41", "twice")),
        ({"id": "n", "text": "x", "did": ["?!"]}, ("line 41", "no word")),
        ({"id": "n", "question": "x", "did": ["y"]}, ("line 41", "text", "required")),
        ({"id": "n", "text": "x", "did": []}, ("line 41", "did")),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: dict[str, Any], words: tuple[str, ...]) -> None:
    refused(custom(tmp_path, [*(a_row(n) for n in range(40)), row]), *words)


def test_too_few_tickets(tmp_path: Path) -> None:
    refused(custom(tmp_path, [a_row(n) for n in range(39)]), "39", "40")


def test_an_unknown_layout_is_refused_before_any_data_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rnd, spec, many, noisy"):
        asyncio.run(tickets.measure(Options(tmp_path, only=("none",)), lambda *_: None))


# -- splits and figures -------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_folds_ask_for_every_ticket_once_and_never_show_it(tmp_path: Path, layout: str) -> None:
    held = load_tickets(custom(tmp_path, [a_row(n) for n in range(60)])).tickets
    asked: list[int] = []
    for fold in range(FOLDS):
        split = deal(held, layout, 0, fold)
        cases = {case for case, _ in split.cases}
        assert not cases & {record.ticket for record in split.records}
        assert len({record.owner for record in split.records}) <= OWNERS[layout]
        asked += cases
    assert sorted(asked) == list(range(60))


def test_only_noisy_owners_record_something_else(tmp_path: Path) -> None:
    held = load_tickets(pack(tmp_path, trajectories())).tickets
    wrong = [record for record in deal(held, "noisy", 0, 0).records if record.did != held[record.ticket].did]
    assert {record.owner for record in wrong} <= {f"agent:{n}" for n in range(4)}
    assert wrong
    assert all(record.did == held[record.ticket].did for record in deal(held, "many", 0, 0).records)


def test_average_precision_is_that_of_the_ranked_decisions() -> None:
    votes = {"a": 3.0, "b": 2.0, "c": 1.0}
    assert average_precision(votes, frozenset(("a", "c"))) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision({}, frozenset(("a",))) == 0


def test_a_context_is_scored_by_its_records(tmp_path: Path) -> None:
    held = load_tickets(pack(tmp_path, trajectories(60))).tickets
    case = 0
    good = next(at for at in range(1, 60) if held[at].did == held[case].did)
    bad = next(at for at in range(1, 60) if not held[at].did & held[case].did)
    records = [Record("agent:0", at, held[at].did) for at in (good, bad)]
    told = {"r0": records[0], "r1": records[1]}
    items = [Item("bad", ("r1",), 30), Item("good", ("r0",), 10), Item("again", ("r0",), 10), Item("?", ("x",), 10)]
    found = dict(
        zip(
            FIGURES,
            figures(labels_of(held), case, records, items, told),
            strict=True,
        )
    )
    assert found["hit"] == 1
    assert found["recall"] == 1
    assert found["waste"] == pytest.approx(50 / 60)
    assert 0 < found["plan_ap"] < 1
    nothing = dict(
        zip(
            FIGURES,
            figures(labels_of(held), case, records, [], {}),
            strict=True,
        )
    )
    assert nothing["hit"] == nothing["plan_ap"] == 0
    assert np.isnan(nothing["waste"])


def test_sharing_is_measured_through_the_layer(tmp_path: Path) -> None:
    folder = custom(tmp_path, [a_row(n) for n in range(40)])
    report = asyncio.run(tickets.measure(Options(folder, only=("many",), folds=1), lambda *_: None))
    value = {row.name: row.value for row in report.rows}
    assert value["tickets.many400.ours.hit"] > value["tickets.many400.own.hit"]
    assert value["tickets.many400.ours.plan_ap_over_own"] > 0
    assert value["tickets.many.ours.leakage"] == value["tickets.many.own.leakage"] == 0
    assert 0 < value["tickets.many400.ours.tokens"] <= 400
    assert all(row.bar is None for row in report.rows if not row.name.startswith("run."))
    for arm in ("own", "pool", "ours"):
        assert value[f"tickets.{arm}.read_p95_ms"] >= value[f"tickets.{arm}.read_p50_ms"] > 0
        assert value[f"tickets.{arm}.write_mean_ms"] > 0
        assert value[f"tickets.{arm}.model_calls"] == 0
