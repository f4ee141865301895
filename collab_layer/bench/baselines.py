"""What a user would pick instead: classical collaborative filtering, from the same visible events.

In:   who holds what so far.
Out:  by name, a score per item for one user.
Pure: chance comes from fixed seeds. Nothing here is a part of the layer.

Sources: EASE: Steck, WWW 2019. GF-CF: Shen et al., CIKM 2021, with its ideal filter cut to 64
components. ItemKNN: Sarwar et al., WWW 2001. iALS: Hu, Koren, Volinsky, ICDM 2008, by the package
`implicit` where it is installed.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from collab_layer.bench.phases import Clock, unclocked
from collab_layer.types.graph import Floats, Ids

NAMES = ("random", "itemknn", "ease", "gfcf", "ials")
RIDGE, KNN_TOP, KNN_SHRINK = 500.0, 32, 10.0
COMPONENTS, POWER, BLEND = 64, 4, 0.3
Score = Callable[[Ids, Ids], Floats]
"""Columns of what a user holds, shape (m,), and of some items, shape (c,), to their scores, shape (c,)."""


class Seen:
    """Who holds what so far, and the models fitted to it; call `fit` before `scores`."""

    def __init__(self) -> None:
        self._held: dict[int, list[int]] = {}
        self._column: dict[int, int] = {}
        self._models: dict[str, Score] = {}
        self._random = np.random.default_rng(0)

    def add(self, user: int, item: int) -> None:
        """A user came to hold an item."""
        self._held.setdefault(user, []).append(item)

    def fit(self, clock: Clock = unclocked) -> None:
        """Fit every model anew, each on the clock; items that fewer than two users hold are left out."""
        counts: dict[int, int] = {}
        for items in self._held.values():
            for item in items:
                counts[item] = counts.get(item, 0) + 1
        kept = sorted(item for item, count in counts.items() if count >= 2)
        self._column = {item: at for at, item in enumerate(kept)}
        self._models = models(self._matrix(), clock) if kept else {}

    def scores(self, held: Sequence[int], items: Sequence[int], clock: Clock = unclocked) -> Mapping[str, Floats]:
        """Each model's scores of some items for one who holds others, 0 for one it does not know; shape (n,) each."""
        mine, at = self._columns(held), [self._column.get(item, -1) for item in items]
        known = np.array(at, np.int64) >= 0
        wanted = np.array(at, np.int64)[known]
        out = {"random": self._random.random(len(items))}
        for name, score in self._models.items():
            out[name] = np.zeros(len(items))
            with clock(name):
                out[name][known] = score(mine, wanted)
        return out

    def _columns(self, items: Sequence[int]) -> Ids:
        return np.array([self._column[item] for item in items if item in self._column], np.int64)

    def _matrix(self) -> Floats:
        rows = np.zeros((len(self._held), len(self._column)))
        for row, user in enumerate(sorted(self._held)):
            rows[row, self._columns(self._held[user])] = 1.0
        return rows


def models(held: Floats, clock: Clock = unclocked) -> dict[str, Score]:
    """Every model that can be fitted here, from a matrix of users and items, shape (u, i), 0 or 1."""
    gram = held.T @ held
    makers: dict[str, Callable[[], Score]] = {
        "itemknn": lambda: _linear(_knn(gram)),
        "ease": lambda: _linear(_ease(gram)),
        "gfcf": lambda: _gfcf(held),
    }
    if installed():
        makers["ials"] = lambda: _ials(held)
    made: dict[str, Score] = {}
    for name, make in makers.items():
        with clock(f"fit_{name}"):
            made[name] = make()
    return made


def installed() -> bool:
    """Whether `implicit` is there."""
    return importlib.util.find_spec("implicit") is not None


def _linear(weights: Floats) -> Score:
    return lambda held, wanted: weights[np.ix_(held, wanted)].sum(axis=0)


def _knn(gram: Floats) -> Floats:
    count = np.sqrt(np.maximum(np.diag(gram), 1.0))
    near = gram / np.outer(count, count) * gram / (gram + KNN_SHRINK)
    np.fill_diagonal(near, 0.0)
    if len(near) > KNN_TOP:
        near[near < -np.sort(-near, axis=0)[KNN_TOP - 1 : KNN_TOP]] = 0.0
    return near


def _ease(gram: Floats) -> Floats:
    inverse = np.linalg.inv(gram + RIDGE * np.eye(len(gram)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return weights


def _gfcf(held: Floats) -> Score:
    """`r N^T N + 0.3 r D^-1/2 V V^T D^1/2`, N the doubly normalised matrix, V its leading directions."""
    items = np.sqrt(np.maximum(held.sum(axis=0), 1.0))
    normal = held / np.sqrt(np.maximum(held.sum(axis=1), 1.0))[:, None] / items
    random = np.random.default_rng(0)
    basis = random.normal(size=(held.shape[1], min(COMPONENTS, *held.shape)))
    for _ in range(POWER):
        basis = np.linalg.qr(normal.T @ (normal @ basis))[0]

    def score(mine: Ids, wanted: Ids) -> Floats:
        near = normal[:, mine].sum(axis=1) @ normal[:, wanted]
        ideal: Floats = (basis[mine] / items[mine, None]).sum(axis=0) @ basis[wanted].T * items[wanted]
        return near + BLEND * ideal

    return score


def _ials(held: Floats) -> Score:
    from scipy.sparse import csr_array, csr_matrix  # pyright: ignore

    kind: Any = import_module("implicit.cpu.als").AlternatingLeastSquares
    options = {"regularization": 0.1, "alpha": 10.0, "iterations": 15, "random_state": 0, "num_threads": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # it minds threads of BLAS; that costs time only
        model: Any = kind(factors=COMPONENTS, **options)
    model.fit(csr_matrix(csr_array(held)), show_progress=False)
    factors: Floats = np.asarray(model.item_factors, np.float64)
    square = factors.T @ factors + 0.1 * np.eye(factors.shape[1])

    def score(held: Ids, items: Ids) -> Floats:
        mine = factors[held]
        wanted: Floats = 11.0 * mine.sum(axis=0)
        taste: Floats = np.asarray(np.linalg.solve(square + 10.0 * mine.T @ mine, wanted), np.float64)
        return factors[items] @ taste

    return score


__all__ = ["NAMES", "Seen", "installed", "models"]
