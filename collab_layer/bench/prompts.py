"""How long the prompts are on an evaluation set; no model is needed.

In:   the folder of an evaluation set.
Out:  a `Report`: tokens of each stage's prompt with the schema of its reply, and the longest reply
      allowed, as means and 95th percentiles over users.

A stand-in notes every question and gives no reply. Tokens are our own estimate, the one that
budgets are kept by: about a quarter below o200k for English prompts with JSON in them.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import numpy as np

from collab_layer.bench.ablation import KIND, drawn, titled
from collab_layer.bench.lift import prepared
from collab_layer.bench.progress import Progress
from collab_layer.bench.replay import replay
from collab_layer.bench.report import Report, Row
from collab_layer.config import Settings
from collab_layer.errors import ModelReplyError, UnknownIdError
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.models import Answered, Reply
from collab_layer.types.asking import Prompt
from collab_layer.types.scope import Sharing
from collab_layer.types.tokens import estimate_tokens

MOST_IN, MOST_OUT = 2_000, 500
"""Bars per ranked user: facets and one ranking of ten candidates together."""
STAGES = ("synthesize", "rank", "answer")


class _Notebook:
    """Stands in for a model: notes what it is asked."""

    name = "notebook"

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int]] = []

    async def complete(self, prompt: Prompt, reply: type[Reply], /) -> Answered[Reply]:
        """Note the question.

        Raises:
            ModelReplyError: Always.
        """
        schema = json.dumps(reply.model_json_schema(), ensure_ascii=False)
        self.asked.append((prompt.stage, prompt.tokens + estimate_tokens(schema), prompt.max_tokens))
        raise ModelReplyError(self.name, "it only takes notes")


async def measure(data_dir: Path, *, users: int = 30, seed: int = 0, progress: Progress | None = None) -> Report:
    """Lay out every stage's prompt for some users.

    Args:
        data_dir: The folder as its publisher lays it out.
        users: Test users drawn by `seed`, >= 2.
        seed: Of the draw.
        progress: Called with what is being done, how much is done, and of how much.

    Raises:
        DataSetError: The folder cannot be used.
    """
    began = time.perf_counter()
    data, steps = prepared(data_dir, 1)
    wanted, names, book = drawn(steps, users, seed), titled(data), _Notebook()
    with tempfile.TemporaryDirectory(prefix="collab-prompts-") as folder:
        opened = await AsyncCollabLayer.open(
            str(Path(folder) / "prompts.db"),
            sharing=Sharing.within_tenant("records"),
            memory_model=book,
            reasoning_model=book,
            settings=Settings(worker=False, trigger="nightly"),
        )
        async with opened as layer:
            async for trial in replay(layer, data, steps, progress, names.__getitem__):
                if trial.user in wanted and not trial.fitting:
                    items = [str(names[item]) for item in trial.lists[KIND][0].tolist()]
                    await _ask(layer, f"user:{trial.user}", items)
            embedder = layer.embedder
    rows = _rows(data.name, book.asked)
    rows.append(Row("run.seconds", time.perf_counter() - began, unit="s"))
    return Report(f"collab bench prompts --data {data_dir.name}", data.sha256, seed, embedder, rows)


async def _ask(layer: AsyncCollabLayer, user: str, items: list[str]) -> None:
    try:
        await layer.rank(user, items)  # words the facets, then ranks
        await layer.answer(user, f"What do others say about {items[0].partition(':')[2].replace('-', ' ')}?")
    except UnknownIdError:  # a user without any like before its first trial
        return


def _rows(name: str, asked: list[tuple[str, int, int]]) -> list[Row]:
    rows: list[Row] = []
    mean_in: dict[str, float] = {}
    for stage in STAGES:
        found = np.array([(tokens, longest) for what, tokens, longest in asked if what == stage], np.float64)
        if not len(found):
            continue
        mean_in[stage] = float(found[:, 0].mean())
        rows += [
            Row(f"{name}.{stage}.prompts", float(len(found)), unit="prompts"),
            Row(f"{name}.{stage}.in_mean", mean_in[stage], unit="tokens"),
            Row(f"{name}.{stage}.in_p95", float(np.quantile(found[:, 0], 0.95)), unit="tokens"),
            Row(f"{name}.{stage}.out_most", float(found[:, 1].max()), unit="tokens"),
        ]
    ranked = mean_in.get("synthesize", 0.0) + mean_in.get("rank", 0.0)
    return [*rows, Row(f"{name}.ranked_user.in_mean", ranked, unit="tokens").against("<=", MOST_IN)]


__all__ = ["measure"]
