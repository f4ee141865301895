"""The table of what a store may promise, made from the enum itself.

In:   optionally the stores to compare, by name.
Out:  a Markdown table; docs hold a copy, and a test compares the two.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Mapping
from itertools import pairwise

from collab_layer.ports import backend
from collab_layer.ports.backend import METHODS, Can


def table(stores: Mapping[str, Collection[Can]] | None = None) -> str:
    """Write one row per ability: its name, what it promises, its method, and who promises it.

    Args:
        stores: Store name to what it promises; one more column each, in the order given.
    """
    columns = stores or {}
    lines = [_row(["ability", "promise", "method", *columns]), _row(["---"] * (3 + len(columns)))]
    meaning = meanings()
    for ability in Can:
        marks = ["yes" if ability in can else "" for can in columns.values()]
        lines.append(_row([f"`{ability}`", meaning[ability], f"`{METHODS[ability]}`", *marks]))
    return "\n".join(lines)


def meanings() -> dict[Can, str]:
    """What each ability promises, as written below its member in the source."""
    tree = ast.parse(inspect.getsource(backend))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == Can.__name__)
    found: dict[Can, str] = {}
    for member, text in pairwise(body):
        match member, text:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(words))):
                found[Can[name]] = words
            case _:
                continue
    return found


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


__all__ = ["meanings", "table"]
