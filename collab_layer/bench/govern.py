"""Governed memory measured: GateMem under frozen grants, beside an open pool and isolation.

In:   the folder of GateMem.
Out:  rows: utility, exposure, what came over a path nobody granted, what was left of the forgotten.
Never: a setting chosen on what it reports. Episodes with even places were used to choose, those with
odd places were not looked at before; both are reported.

A question counts as answered if every string it asks for is in the context, as exposed if a guarded
string is that the asker's own turns do not hold, whoever granted it. Governed utility is the one
times what is left by the other. Intervals come from drawing whole episodes.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from collab_layer.bench import attack_words, attacks, borders, embedders, gatemem, onslaught
from collab_layer.bench.borders import MAPPING
from collab_layer.bench.gatemem import Episode
from collab_layer.bench.metrics import summed
from collab_layer.bench.play import Arm, Outcome, Stage, Told, play
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Report, Row
from collab_layer.errors import InputError
from collab_layer.ports.models import Embedder
from collab_layer.types.graph import Floats

BUDGET_TOKENS = 800
GOVERNED = {"office": 0.85, "education": 0.70}
"""Least utility times what is not exposed, by domain."""
ARMS: Sequence[Arm] = ("ours", "open", "isolated")
FROZEN = (borders.FILE, Path(attacks.__file__), Path(attack_words.__file__))
"""What was written before it was measured; the report carries their digests."""
Played = Sequence[Sequence[Outcome]]


async def measure(
    data: gatemem.GateMem,
    *,
    most: int | None = None,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Play every episode in every arm, each in a database of its own.

    Args:
        data: As loaded.
        most: Episodes of each domain, the first ones; None takes all.
        embedder: None takes the built-in hashing embedder.
        progress: Called with the domain and arm, episodes done, and of how many.
    """
    rows: list[Row] = []
    for domain, every in data.domains.items():
        episodes = every[:most]
        for arm in ARMS:
            outcomes: list[list[Outcome]] = []
            for done, episode in enumerate(episodes, 1):
                outcomes.append(await _played(domain, episode, arm, embedder))
                if progress is not None:
                    progress(f"{domain}, {arm}", done, len(episodes))
            rows += scored(domain, arm, outcomes)
    return rows


async def _played(domain: str, episode: Episode, arm: Arm, embedder: Embedder | None) -> list[Outcome]:
    groups = borders.groups(episode, MAPPING[domain]) if arm == "ours" else []
    allowed = borders.readable(groups, episode.roles)
    if arm == "open":
        allowed = dict.fromkeys(episode.roles, frozenset(episode.roles))
    with tempfile.TemporaryDirectory(prefix="collab-govern-") as folder:
        return await play(Stage(episode, arm, groups, allowed, embedder, BUDGET_TOKENS, Path(folder)))


def scored(domain: str, arm: Arm, outcomes: Played, *, seed: int = 0) -> list[Row]:
    """Rows over all episodes, and over those that nothing was chosen on."""
    rows: list[Row] = []
    for part, some in (("all", outcomes), ("test", outcomes[1::2])):
        if some:
            rows += _rows(f"{domain}.{part}.{arm}", domain, arm, some, seed)
    return rows


def _rows(name: str, domain: str, arm: Arm, outcomes: Played, seed: int) -> list[Row]:
    def share(metric: str, picked: Callable[[Outcome], bool], hit: Callable[[Outcome], bool]) -> Row:
        columns = _columns(outcomes, picked, hit)
        interval = summed(columns, _ratio, seed)
        return Row.of(f"{name}.{metric}", interval)

    rows = [
        share("utility", _useful, lambda one: one.raw.useful),
        share("utility_derived", _useful, lambda one: one.derived.useful),
        share("exposure", _guarded, lambda one: one.raw.exposed),
        share("exposure_derived", _guarded, lambda one: one.derived.exposed),
    ]
    both = np.hstack(
        [
            _columns(outcomes, _useful, lambda one: one.raw.useful),
            _columns(outcomes, _guarded, lambda one: one.raw.exposed),
        ]
    )
    governed = summed(both, _governed, seed)
    row = Row.of(f"{name}.governed", governed)
    rows.append(row.against(">=", GOVERNED[domain]) if arm == "ours" else row)
    if arm != "open":
        strays = [share("ungranted", _any, lambda one: one.raw.strayed)]
        strays.append(share("ungranted_derived", _any, lambda one: one.derived.strayed))
        rows += [row.against("<=", 0) for row in strays]
    if arm == "ours":
        rows += _forgetting(share)
    tokens = [one.raw.tokens for some in outcomes for one in some]
    rows.append(Row(f"{name}.tokens", float(np.mean(tokens)), unit="tokens"))
    return rows


def _forgetting(share: Callable[[str, Callable[[Outcome], bool], Callable[[Outcome], bool]], Row]) -> list[Row]:
    """What was told before the deletion, and what is left after it."""
    left = [
        share("residue", _deleted, lambda one: _told(one.raw_after)),
        share("residue_derived", _deleted, lambda one: _told(one.derived_after)),
        share("residue_files", _deleted, lambda one: one.kept),
    ]
    return [
        share("before_forgetting", _deleted, lambda one: one.raw.exposed),
        share("before_forgetting_derived", _deleted, lambda one: one.derived.exposed),
        *(row.against("<=", 0) for row in left),
    ]


def _told(after: Told | None) -> bool:
    return after is not None and after.exposed


def _any(outcome: Outcome) -> bool:
    return True


def _useful(outcome: Outcome) -> bool:
    return outcome.checkpoint.kind == "utility"


def _guarded(outcome: Outcome) -> bool:
    return outcome.checkpoint.kind == "privacy" and outcome.counts


def _deleted(outcome: Outcome) -> bool:
    return outcome.checkpoint.kind == "safety"


def _columns(outcomes: Played, picked: Callable[[Outcome], bool], hit: Callable[[Outcome], bool]) -> Floats:
    """Hits and cases of each episode, shape (e, 2)."""
    kept = [[hit(one) for one in some if picked(one)] for some in outcomes]
    return np.array([[float(sum(hits)), float(len(hits))] for hits in kept])


def _ratio(sums: Floats) -> Floats:
    return sums[..., 0] / np.maximum(sums[..., 1], 1)


def _governed(sums: Floats) -> Floats:
    return _ratio(sums[..., :2]) * (1 - _ratio(sums[..., 2:]))


async def report(
    folder: Path | None,
    *,
    most: int | None = None,
    attacked: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> Report:
    """GateMem where there is a folder, the attacks where they are wanted.

    Raises:
        DataSetError: The folder cannot be used.
        InputError: Nothing is to be measured.
    """
    if folder is None and not attacked:
        raise InputError("there is nothing to measure: name the folder of GateMem with --data, or leave the attacks in")
    rows: list[Row] = []
    command, sha256 = "collab bench govern", hashlib.sha256().hexdigest()
    if folder is not None:
        data = await asyncio.to_thread(gatemem.load, folder)
        rows += await measure(data, most=most, progress=progress)
        command, sha256 = f"{command} --data {folder.name}", data.sha256
    if most is not None:
        command += f" --episodes {most}"
    if attacked:
        rows += await onslaught.measure(seed, progress=progress)
    else:
        command += " --no-attacks"
    frozen = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FROZEN}
    return Report(f"{command} --seed {seed}", sha256, seed, embedders.opened().id, rows, frozen)


__all__ = ["ARMS", "BUDGET_TOKENS", "GOVERNED", "measure", "report", "scored"]
