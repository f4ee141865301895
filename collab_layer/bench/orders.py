"""Fit the weights of `stages.orders` on our own lines: `python -m collab_layer.bench.orders`.

In:   `order_words`: orders and honest lines.
Out:  the table in `stages/order_weights.py`, byte for byte the same each time.
Pure but for the file it prints to standard output. No random numbers, no text of any data set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from collab_layer.bench.order_words import HONEST, ORDERS
from collab_layer.stages.order_signs import SIGNS
from collab_layer.stages.orders import shown_by
from collab_layer.types.graph import Floats

RIDGE = 0.1
STEPS, RATE = 3_000, 0.3
LEAST = 0.05
"""Weights below it are left out."""
PAIRS = tuple(combinations(SIGNS, 2))


def fitted(orders: Sequence[str], honest: Sequence[str]) -> dict[str, float]:
    """Logistic regression over signs and pairs of signs, both classes weighing the same.

    No weight but the constant is below 0: nothing that is added to an order makes it less of one.

    Args:
        orders: Lines that speak to a model as its master.
        honest: Lines that do not.

    Returns:
        Name of a sign, or two names with a blank between, to its weight; "" is the constant.
    """
    rows = np.array([_row(line) for line in (*orders, *honest)])
    right = np.repeat([1.0, 0.0], [len(orders), len(honest)])
    weigh = np.where(right > 0, 0.5 / len(orders), 0.5 / len(honest))
    weights, constant = np.zeros(rows.shape[1]), 0.0
    for _ in range(STEPS):
        miss = (1 / (1 + np.exp(-(rows @ weights + constant))) - right) * weigh
        weights = np.maximum(0.0, weights - RATE * (rows.T @ miss + RIDGE * weights / len(right)))
        constant -= RATE * float(miss.sum())
    names = (*SIGNS, *(" ".join(pair) for pair in PAIRS))
    table = {name: round(float(weight), 2) for name, weight in zip(names, weights, strict=True)}
    return {"": round(constant, 2), **{name: weight for name, weight in table.items() if abs(weight) >= LEAST}}


def module(table: Mapping[str, float]) -> str:
    """The table as Python."""
    lines = [f'    "{name}": {weight},' for name, weight in table.items()]
    head = '"""Weights of signs and of pairs; written by `python -m collab_layer.bench.orders`, not by hand."""'
    typed = "WEIGHTS: Mapping[str, float] = {"
    tail = ["}", '""""" is the constant."""', "", '__all__ = ["WEIGHTS"]', ""]
    return "\n".join([head, "", "from collections.abc import Mapping", "", typed, *lines, *tail])


def _row(line: str) -> Floats:
    found = shown_by(line)
    return np.array([float(one in found) for one in SIGNS] + [float(a in found and b in found) for a, b in PAIRS])


def main() -> None:
    """Print the module."""
    print(module(fitted([line for lines in ORDERS.values() for line in lines], HONEST)), end="")


if __name__ == "__main__":
    main()
