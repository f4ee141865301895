"""Check a rule tree and compile its parts; nothing in it is ever executed as code.

In:   JSON text or a mapping, and the names of the features it may use.
Out:  `Parsed`: the canonical tree, its terms and rules.
Pure: refuses with the path of the offending node; depth and size are checked without
      recursion before anything else looks at the tree.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from collab_layer.errors import InvalidRuleError
from collab_layer.stages.rule_math import OPERATORS
from collab_layer.stages.rule_nodes import (
    LIMIT,
    Action,
    Affine,
    Compare,
    Condition,
    Decay,
    Factor,
    Junction,
    Negation,
    Number,
    Rule,
    Shrink,
    Term,
)

VERSION = 1
MAX_DEPTH = 16
MAX_NODES = 1000
MAX_CHARS = 100_000
MAX_WEIGHT = 1000.0
"""Numbers that scale or add are clamped to [-MAX_WEIGHT, MAX_WEIGHT]."""
MAX_THRESHOLD = 1e9
"""Numbers that a feature is compared with are clamped to [-MAX_THRESHOLD, MAX_THRESHOLD]."""
MIN_SHRINK = 1e-6

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A checked tree."""

    name: str
    canonical: dict[str, Any]
    terms: tuple[Term, ...]
    rules: tuple[Rule, ...]


def parse(source: str | bytes | Mapping[str, Any], features: Collection[str]) -> Parsed:
    """Check and compile.

    Raises:
        InvalidRuleError: The tree is malformed, too deep, too large, or names an unknown feature.
    """
    tree = _read(source) if isinstance(source, str | bytes) else source
    _check_shape(tree)
    return _Parser(frozenset(features)).tree(_canonical(tree))


def _read(source: str | bytes) -> Any:
    try:
        text = source.decode() if isinstance(source, bytes) else source
    except UnicodeDecodeError as error:
        raise InvalidRuleError("$", "is not UTF-8 text") from error
    if len(text) > MAX_CHARS:
        raise InvalidRuleError("$", f"longer than {MAX_CHARS} characters")
    depth = deepest = 0
    for mark in re.findall(r'"(?:[^"\\]|\\.)*"|[\[{\]}]', text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark, 0)
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise InvalidRuleError("$", f"nested deeper than {MAX_DEPTH}")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except ValueError as error:
        raise InvalidRuleError("$", f"is not JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a key appears twice among {_short(', '.join(key for key, _ in pairs))}")
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a finite number")


def _check_shape(tree: Any) -> None:
    """Depth, size and kinds of all values, without recursion: a cyclic tree is too deep."""
    todo: list[tuple[str, Any, int]] = [("$", tree, 1)]
    nodes = 1
    while todo:
        path, value, depth = todo.pop()
        children = _children(path, value)
        nodes += len(children)
        if nodes > MAX_NODES:
            raise InvalidRuleError(path, f"the tree has more than {MAX_NODES} nodes")
        if children and depth > MAX_DEPTH:
            raise InvalidRuleError(path, f"nested deeper than {MAX_DEPTH}")
        todo.extend((below, child, depth + 1) for below, child in children)


def _children(path: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        items = list(cast(Mapping[Any, Any], value).items())[: MAX_NODES + 1]
        for key, _ in items:
            if not isinstance(key, str):
                raise InvalidRuleError(path, f"the key {_short(repr(key))} is no string")
        return [(f"{path}.{_short(key)}", child) for key, child in items]
    if isinstance(value, list | tuple):
        return [(f"{path}[{at}]", child) for at, child in enumerate(cast(list[Any], value[: MAX_NODES + 1]))]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidRuleError(path, f"{value} is not a finite number")
    if isinstance(value, int) and abs(value) > 10**300:
        raise InvalidRuleError(path, "the number is too large")
    if not isinstance(value, str | bool | int | float):
        raise InvalidRuleError(path, f"{type(value).__name__} is no part of a rule")
    return []


def _canonical(value: Any) -> Any:
    """The same tree in plain dicts and lists; 1 and 1.0 become one."""
    if isinstance(value, Mapping):
        node = cast(Mapping[str, Any], value)
        return {str(key): _canonical(node[key]) for key in sorted(node)}
    if isinstance(value, list | tuple):
        return [_canonical(child) for child in cast(list[Any], value)]
    return value if isinstance(value, str | bool) else float(value) + 0.0


def _short(text: str, size: int = 40) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"


@dataclass(frozen=True, slots=True)
class _Parser:
    """One method per kind of node; the tree is known to be shallow and of plain values."""

    known: frozenset[str]

    def tree(self, value: Any) -> Parsed:
        node = self.mapping(value, "$")
        self.keys(node, "$", need={"name", "version", "score"}, may={"rules", "note"})
        self.note(node, "$")
        name = self.text(node["name"], "$.name")
        if isinstance(node["version"], bool) or node["version"] != VERSION:
            raise InvalidRuleError("$.version", f"must be {VERSION}")
        terms = [self.term(item, at) for item, at in self.items(node["score"], "$.score")]
        rules = [self.rule(item, at) for item, at in self.items(node.get("rules", []), "$.rules", empty=True)]
        return Parsed(name, node, tuple(terms), tuple(rules))

    def term(self, value: Any, path: str) -> Term:
        node = self.mapping(value, path)
        weight = self.number(node.get("weight", 1.0), f"{path}.weight", MAX_WEIGHT)
        rest = {key: child for key, child in node.items() if key != "weight"}
        if set(rest) == {"product"}:
            factors = [self.factor(item, at) for item, at in self.items(rest["product"], f"{path}.product")]
        else:
            factors = [self.factor(rest, path)]
        return Term(weight, tuple(factors))

    def factor(self, value: Any, path: str) -> Factor:
        if not isinstance(value, dict):
            return Number(self.number(value, path, MAX_WEIGHT))
        node = self.mapping(value, path)
        if set(node) == {"constant"}:
            return Number(self.number(node["constant"], f"{path}.constant", MAX_WEIGHT))
        if set(node) == {"decay"}:
            return self.decay(node["decay"], f"{path}.decay")
        if set(node) == {"shrink"}:
            return self.shrink(node["shrink"], f"{path}.shrink")
        return self.affine(node, path)

    def affine(self, node: Node, path: str) -> Affine:
        self.keys(node, path, need={"feature"}, may={"scale", "bias", "floor", "ceil"})
        floor = self.number(node.get("floor", -LIMIT), f"{path}.floor", MAX_THRESHOLD if "floor" in node else LIMIT)
        ceil = self.number(node.get("ceil", LIMIT), f"{path}.ceil", MAX_THRESHOLD if "ceil" in node else LIMIT)
        if floor > ceil:
            raise InvalidRuleError(f"{path}.floor", "is above `ceil`")
        scale = self.number(node.get("scale", 1.0), f"{path}.scale", MAX_WEIGHT)
        bias = self.number(node.get("bias", 0.0), f"{path}.bias", MAX_WEIGHT)
        return Affine(self.feature(node, path), scale, bias, floor, ceil)

    def decay(self, value: Any, path: str) -> Decay:
        node = self.mapping(value, path)
        self.keys(node, path, need={"feature", "rate"}, may={"over"})
        rate = self.number(node["rate"], f"{path}.rate", MAX_WEIGHT)
        if rate < 0:
            raise InvalidRuleError(f"{path}.rate", "must not be negative: a decay never grows")
        return Decay(self.feature(node, path), rate, self.number(node.get("over", 0.0), f"{path}.over", MAX_THRESHOLD))

    def shrink(self, value: Any, path: str) -> Shrink:
        node = self.mapping(value, path)
        self.keys(node, path, need={"feature", "by"}, may=set())
        by = self.number(node["by"], f"{path}.by", MAX_THRESHOLD)
        if by <= 0:
            raise InvalidRuleError(f"{path}.by", "must be above 0, else it divides by zero")
        return Shrink(self.feature(node, path), max(by, MIN_SHRINK))

    def rule(self, value: Any, path: str) -> Rule:
        node = self.mapping(value, path)
        self.keys(node, path, need={"then"}, may={"when", "note"})
        self.note(node, path)
        when = self.condition(node["when"], f"{path}.when") if "when" in node else None
        actions: list[Action] = []
        drops = False
        for item, at in self.items(node["then"], f"{path}.then"):
            action = self.action(item, at)
            drops = drops or action is None
            actions += [action] if action else []
        return Rule(when, tuple(actions), drops)

    def action(self, value: Any, path: str) -> Action | None:
        """The action; `None` stands for drop."""
        node = self.mapping(value, path)
        self.one_of(node, path, ("multiply", "add", "decay", "shrink", "drop"))
        ((kind, given),) = node.items()
        below = f"{path}.{kind}"
        if kind == "drop":
            if given is not True:
                raise InvalidRuleError(below, "must be true")
            return None
        if kind in ("multiply", "add"):
            return Action("add" if kind == "add" else "multiply", self.factor(given, below))
        return Action("multiply", self.decay(given, below) if kind == "decay" else self.shrink(given, below))

    def condition(self, value: Any, path: str) -> Condition:
        node = self.mapping(value, path)
        if "feature" in node:
            self.keys(node, path, need={"feature", "op", "value"}, may=set())
            if not isinstance(node["op"], str) or node["op"] not in OPERATORS:
                raise InvalidRuleError(f"{path}.op", f"must be one of {' '.join(OPERATORS)}")
            return Compare(
                self.feature(node, path), node["op"], self.number(node["value"], f"{path}.value", MAX_THRESHOLD)
            )
        self.one_of(node, path, ("all", "any", "not"))
        ((kind, given),) = node.items()
        if kind == "not":
            return Negation(self.condition(given, f"{path}.not"))
        parts = [self.condition(item, at) for item, at in self.items(given, f"{path}.{kind}")]
        return Junction("all" if kind == "all" else "any", tuple(parts))

    def feature(self, node: Node, path: str) -> str:
        name = node["feature"]
        if not isinstance(name, str) or name not in self.known:
            near = difflib.get_close_matches(str(name)[:80], sorted(self.known), 1)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(sorted(self.known))}"
            raise InvalidRuleError(f"{path}.feature", f"`{_short(str(name))}` is no feature; {hint}")
        return name

    def number(self, value: Any, path: str, most: float) -> float:
        if isinstance(value, bool) or not isinstance(value, float):
            raise InvalidRuleError(path, f"must be a number, not {type(value).__name__}")
        return min(max(value, -most), most)

    def text(self, value: Any, path: str) -> str:
        if not isinstance(value, str) or not value.strip():
            raise InvalidRuleError(path, "must be a text that is not empty")
        return value

    def note(self, node: Node, path: str) -> None:
        if "note" in node:
            self.text(node["note"], f"{path}.note")

    def mapping(self, value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InvalidRuleError(path, f"must be an object, not {type(value).__name__}")
        return cast(dict[str, Any], value)

    def items(self, value: Any, path: str, *, empty: bool = False) -> list[tuple[Any, str]]:
        if not isinstance(value, list) or not (value or empty):
            raise InvalidRuleError(path, "must be a list" if empty else "must be a list that is not empty")
        return [(item, f"{path}[{at}]") for at, item in enumerate(cast(list[Any], value))]

    def keys(self, node: Node, path: str, *, need: set[str], may: set[str]) -> None:
        if missing := sorted(need - set(node)):
            raise InvalidRuleError(path, f"lacks `{missing[0]}`")
        if extra := sorted(set(node) - need - may):
            allowed = ", ".join(sorted(need | may))
            raise InvalidRuleError(f"{path}.{_short(extra[0])}", f"is an unknown key; allowed are {allowed}")

    def one_of(self, node: Node, path: str, kinds: tuple[str, ...]) -> None:
        if len(node) != 1 or next(iter(node)) not in kinds:
            raise InvalidRuleError(path, f"must have exactly one of the keys {', '.join(kinds)}")


__all__ = ["MAX_DEPTH", "MAX_NODES", "MAX_WEIGHT", "VERSION", "Parsed", "parse"]
