"""Filters, order, pages and a simple ranking."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from zep_contract.strict import Call, ContractError, Json, moment

DEFAULT_PAGE, MAX_PAGE = 50, 100
MODELLED = {"date_filters", "edge_types", "edge_uuids", "episode_uuids", "source_node_uuids", "target_node_uuids"}
_WORD = re.compile(r"\w+")
_STEM = 4
_COMPARE: dict[str, Callable[[datetime, datetime], bool]] = {
    "eq": lambda left, right: left == right,
    "ne": lambda left, right: left != right,
    "gt": lambda left, right: left > right,
    "gte": lambda left, right: left >= right,
    "lt": lambda left, right: left < right,
    "lte": lambda left, right: left <= right,
}


def selected(edge: Json, filters: Any) -> bool:
    """Apply the filters that are modelled."""
    ignored = filters.model_fields_set - MODELLED
    if ignored:
        raise ContractError(501, "not_modelled", f"filters {sorted(ignored)}")
    dates = filters.date_filters
    if dates is not None and not any(
        all(_meets(edge, one) for one in group.all_of or []) for group in dates.any_of or []
    ):
        return False
    if filters.episode_uuids is not None and not set(filters.episode_uuids) & set(edge["episode_uuids"]):
        return False
    wanted = {
        "uuid": filters.edge_uuids,
        "name": filters.edge_types,
        "source_node_uuid": filters.source_node_uuids,
        "target_node_uuid": filters.target_node_uuids,
    }
    return all(values is None or edge[field] in values for field, values in wanted.items())


def _meets(edge: Json, condition: Any) -> bool:
    stored = edge.get(condition.field)
    if condition.operator in ("is_null", "is_not_null"):
        return (stored is None) == (condition.operator == "is_null")
    if stored is None:
        return False
    limit = condition.value if condition.value.tzinfo else condition.value.replace(tzinfo=UTC)
    return _COMPARE[condition.operator](moment(stored), limit)


def page(call: Call, rows: list[Json], orders: tuple[str, ...]) -> Json:
    """One page of rows in the order asked for; the cursor counts rows, which is the worst a caller may meet."""
    size, begin = _number(call, "page_size", DEFAULT_PAGE), _number(call, "cursor", 0)
    key = call.query.get("order_by", orders[0] if orders else "")
    if not 1 <= size <= MAX_PAGE or (orders and key not in orders):
        raise ContractError(400, "validation", f"page_size is 1 to {MAX_PAGE}, order_by one of {orders}", "page_size")
    if orders:
        rows = sorted(rows, key=lambda row: str(row.get(key) or ""), reverse=call.query.get("order") == "desc")
    end = begin + size
    return {
        "items": rows[begin:end],
        "next_cursor": str(end) if end < len(rows) else None,
        "total_size": len(rows),
    }


def _number(call: Call, name: str, default: int) -> int:
    try:
        return int(call.query.get(name, default))
    except ValueError as error:
        raise ContractError(400, "validation", f"{name} is no number", name) from error


def ranked(rows: list[Json], query: str, field: str) -> list[Json]:
    """Rows that share the beginnings of words with a query, those that share most first, with a score."""
    if not query.strip():
        raise ContractError(400, "validation", "the query is empty", "query")
    wanted = _stems(query)
    scored = [(len(wanted & _stems(str(row.get(field)))) / len(wanted or {""}), row) for row in rows]
    best = sorted(scored, key=lambda pair: (-pair[0], str(pair[1]["uuid"])))
    return [{**row, "score": score} for score, row in best if score > 0]


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.casefold())}
