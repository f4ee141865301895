"""Calls written for Mem0 1.x in the form that 2.x takes. Opt-in.

In:   a method's name and its keyword arguments, as frameworks pass them: ids and
      `limit` at the top of `search` and `get_all`, `filters` in `add`, `output_format`.
Out:  the same call for 2.x. Positional arguments are left alone.
Pure: no SDK, no I/O.

Written against the calls of agno, autogen-ext, strands-agents-tools and `mem0.proxy`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from collab_layer_mem0.mapping import KINDS

DROPPED = ("output_format", "version", "api_version", "enable_graph", "async_mode", "keyword_search_only")
"""Switches of 1.x that have no counterpart."""


def fold(method: str, kwargs: Mapping[str, Any], *, platform: bool) -> dict[str, Any]:
    """Fold the arguments of a 1.x call.

    Args:
        method: `add`, `search`, `get_all` or `delete_all`; any other is left alone.
        kwargs: What the caller passed.
        platform: The call goes to Mem0's service, whose `add` takes filters.
    """
    folds: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "search": _asked,
        "get_all": _asked,
        "delete_all": _top_ids,
        "add": dict[str, Any] if platform else _top_ids,
    }
    if method not in folds:
        return dict(kwargs)
    return folds[method]({key: value for key, value in kwargs.items() if key not in DROPPED})


def _asked(kwargs: dict[str, Any]) -> dict[str, Any]:
    ids = {field: kwargs.pop(field) for field in KINDS if field in kwargs}
    limit = kwargs.pop("limit", None)
    if limit is not None and kwargs.get("top_k") is None:
        kwargs["top_k"] = limit
    filters = _given(ids) | _filters(kwargs)
    if filters:
        kwargs["filters"] = filters
    return {key: value for key, value in kwargs.items() if value is not None or key == "threshold"}


def _top_ids(kwargs: dict[str, Any]) -> dict[str, Any]:
    filters = _filters(kwargs)
    kwargs.pop("filters", None)
    inside = {field: filters[field] for field in KINDS if field in filters}
    return inside | _given(kwargs)


def _filters(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    filters = kwargs.get("filters")
    return dict(cast("Mapping[str, Any]", filters)) if isinstance(filters, Mapping) else {}


def _given(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in kwargs.items() if value is not None}


__all__ = ["DROPPED", "fold"]
