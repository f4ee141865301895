"""The ablation tells a model that uses what neighbours know from one that does not."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from collab_layer.bench import ablation
from collab_layer.errors import DataSetError, ModelDownError
from collab_layer.surface.cli.main import main
from collab_layer.testing import ScriptedModel
from collab_layer.testing.openai_server import FakeOpenAI, completion

CANDIDATE = re.compile(r'^(c\d+) "(.*?)"', re.MULTILINE)


def run(folder, model, **more):
    report = asyncio.run(ablation.measure(folder, model, users=12, **more))
    return report, {row.name: row.value for row in report.rows}


def reader():
    """Scores a candidate by whether a facet names it."""

    def reply(prompt):
        facets = prompt.data.split("facets:")[1].split("candidates:")[0].casefold().replace("-", " ")
        scores = []
        for id_, label in CANDIDATE.findall(prompt.data.split("candidates:")[1]):
            words = " ".join(re.findall(r"\w+", label.casefold()))
            scores.append({"id": id_, "facets": [], "why": "", "score": 90 if words in facets else 10})
        return {"scores": scores}

    return ScriptedModel(reply, name="reader")


def blind():
    """Scores by place alone."""

    def reply(prompt):
        ids = [id_ for id_, _ in CANDIDATE.findall(prompt.data.split("candidates:")[1])]
        return {"scores": [{"id": id_, "score": 50 - at} for at, id_ in enumerate(ids)]}

    return ScriptedModel(reply, name="blind")


def test_a_model_that_ignores_facets_gains_nothing_by_them(sequences):
    _, rows = run(sequences, blind())
    assert rows["ml1m.pop9.real_minus_empty.n5"] == 0
    assert len({rows[f"ml1m.pop9.{variant}.h1"] for variant in ablation.VARIANTS}) == 1


def test_a_model_that_reads_facets_differs_with_them(sequences):
    report, rows = run(sequences, reader())
    assert rows["ml1m.pop9.lorem.h1"] == rows["ml1m.pop9.empty.h1"]
    assert rows["ml1m.pop9.real.n5"] != rows["ml1m.pop9.empty.n5"]
    assert rows["ml1m.pop9.users"] == 12
    assert rows["ml1m.pop9.real.calls_per_user"] == 1
    assert rows["ml1m.pop9.real.tokens_in_per_user"] > 300
    assert rows["ml1m.pop9.product.calls_per_user"] == 1
    assert report.data_sha256


def test_every_part_of_the_work_can_be_left_out(sequences):
    model = reader()
    _, rows = run(sequences, model)
    for variant in ("uncurated", "generic", "no_write"):
        assert f"ml1m.pop9.real_minus_{variant}.n5" in rows
    assert rows["ml1m.pop9.real.n5"] != rows["ml1m.pop9.uncurated.n5"]
    assert rows["ml1m.pop9.product_minus_no_read.n5"] == pytest.approx(
        rows["ml1m.pop9.product.n5"] - rows["ml1m.pop9.no_read.n5"]
    )


def test_a_model_behind_an_openai_compatible_address_goes_through_every_variant(sequences, monkeypatch, capsys):
    """What a user has: `--reasoning-model openai:…` with an address of its own."""

    scores = [{"id": f"c{at}", "score": 50 - at} for at in range(1, 11)]
    with FakeOpenAI() as server:
        server.will(completion(json.dumps({"scores": scores})))
        monkeypatch.setenv("COLLAB_REASONING_BASE_URL", server.url)
        monkeypatch.setenv("COLLAB_REASONING_API_KEY", "none")
        command = ["bench", "lift", "--data", str(sequences), "--users", "3", "--json"]
        assert main([*command, "--reasoning-model", "openai:small"]) == 0
        rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
        assert len(server.requests) == 3 * (len(ablation.VARIANTS) + 2)
    assert all(rows[f"ml1m.pop9.{variant}.answered"] == 1 for variant in ablation.VARIANTS)
    assert rows["ml1m.pop9.real.tokens_in_per_user"] == 11


def test_the_same_seed_gives_the_same_figures(sequences):
    first, second = (run(sequences, reader(), seed=3)[1] for _ in range(2))
    first.pop("run.seconds"), second.pop("run.seconds")
    assert first == second


def test_a_model_that_is_down_hits_nothing_and_is_not_hidden(sequences):
    _, rows = run(sequences, ScriptedModel(lambda _prompt: ModelDownError("m", "no route", calls=1)))
    assert rows["ml1m.pop9.real.h1"] == 0
    assert rows["ml1m.pop9.real.answered"] == 0
    assert rows["ml1m.pop9.product.h1"] == rows["ml1m.pop9.rules.h1"]


def test_a_memory_model_words_the_facets(sequences):
    def words(prompt):
        return {"facets": [{"text": "They hold films of one kind", "support": ["m1", "m2"]}]}

    memory = ScriptedModel(words, name="memory")
    _, rows = run(sequences, blind(), memory=memory)
    assert memory.prompts
    assert rows["ml1m.pop9.product.calls_per_user"] > 1


def test_another_folder_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(DataSetError):
        asyncio.run(ablation.measure(tmp_path, blind()))


def test_the_command_needs_a_reasoning_model_for_a_memory_model(sequences, capsys):
    assert main(["bench", "lift", "--data", str(sequences), "--memory-model", "openai:x"]) == 2
    assert "--reasoning-model" in capsys.readouterr().err


def test_the_command_without_a_model_measures_the_rules(sequences, capsys):
    main(["bench", "lift", "--data", str(sequences), "--seeds", "1", "--json"])
    names = {row["name"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert "ml1m.pop9.ours.lift" in names


def test_prompts_are_measured_without_a_model(sequences, capsys):
    assert main(["bench", "prompts", "--data", str(sequences), "--users", "3", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["ml1m.rank.prompts"]["value"] == 3
    assert 300 < rows["ml1m.synthesize.in_mean"]["value"] < 2_000
    assert rows["ml1m.ranked_user.in_mean"]["ok"]
