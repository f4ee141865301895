"""The same for Mem0's service, where there is no store to tap: its answers are all we see.

In:   calls of `MemoryClient` and `AsyncMemoryClient`, and what the service answers.
Out:  flows like those in `flows`. What a search or a list shows is told as it is seen;
      before something is deleted wholesale, its ids are asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from collab_layer_mem0 import flows, mapping
from collab_layer_mem0.flows import Call, Handler
from collab_layer_mem0.merge import derived_id, results_of
from collab_layer_mem0.refusals import DerivedReadOnlyError
from collab_layer_mem0.steps import Flow

MAX_SEEN = 10_000
PAGE = 200
_FIELD = {"user": "user_id", "agent": "agent_id", "run": "run_id", "app": "app_id"}
_log = logging.getLogger("collab_layer_mem0")


def added(call: Call) -> Flow:
    """`add`: told if the service answers with memories; usually it only queues them."""
    named = call.prepare()
    answer = yield call.run
    scope: dict[str, Any] = {**_scope(named), **(named.get("metadata") or {})}
    for one in _items(answer):
        if one.get("event", "ADD") == "DELETE":
            call.collab.tap.gone(str(one["id"]))
        else:
            _tell(call, {**scope, **one})
    yield call.collab.bridge.flush
    return answer


def listed(call: Call) -> Flow:
    """`get_all`: what it shows is told."""
    named = call.prepare()
    answer = yield call.run
    _see(call, named, answer)
    return answer


def searched(call: Call) -> Flow:
    """`search`: what it shows is told, then what neighbours know is added."""
    named = call.prepare()
    answer = yield call.run
    _see(call, named, answer)
    return (yield from flows.enriched(call, named, answer))


def updated(call: Call) -> Flow:
    """`update`: the memory is told as it now reads."""
    memory_id = call.arguments().get("memory_id")
    if derived_id(memory_id) is not None:
        raise DerivedReadOnlyError(str(memory_id))
    call.prepare()
    answer = yield call.run
    yield from _reread(call, memory_id)
    yield call.collab.bridge.flush
    return answer


def deleted(call: Call) -> Flow:
    """`delete`: our own ids are forgotten by the layer, others are told as gone."""
    memory_id = call.arguments().get("memory_id")
    if derived_id(memory_id) is not None:
        return (yield from flows.deleted(call))
    call.prepare()
    answer = yield call.run
    call.collab.tap.gone(str(memory_id))
    yield call.collab.bridge.flush
    return answer


def deleted_all(call: Call) -> Flow:
    """`delete_all`: its answer names no ids, so they are asked for before."""
    ids = yield from _ids(call, [_scope(call.prepare())])
    return (yield from _without(call, ids))


def deleted_users(call: Call) -> Flow:
    """`delete_users`, and `reset`, which calls it: as `delete_all`, for everybody if nobody is named."""
    scope = _scope(call.prepare())
    scopes = [scope] if scope else (yield from _everybody(call))
    ids = yield from _ids(call, scopes)
    return (yield from _without(call, ids))


def batch_updated(call: Call) -> Flow:
    """`batch_update`: each memory is told as it now reads."""
    ids = [one.get("memory_id") for one in _batch(call)]
    for memory_id in ids:
        if derived_id(memory_id) is not None:
            raise DerivedReadOnlyError(str(memory_id))
    answer = yield call.run
    for memory_id in ids:
        yield from _reread(call, memory_id)
    yield call.collab.bridge.flush
    return answer


def batch_deleted(call: Call) -> Flow:
    """`batch_delete`: each id is told as gone; our own ids have to go through `delete`."""
    ids = [one.get("memory_id") for one in _batch(call)]
    for memory_id in ids:
        if derived_id(memory_id) is not None:
            raise DerivedReadOnlyError(str(memory_id))
    answer = yield call.run
    for memory_id in ids:
        call.collab.tap.gone(str(memory_id))
    yield call.collab.bridge.flush
    return answer


HANDLERS: Mapping[str, Handler] = {
    "add": added,
    "get": flows.got,
    "get_all": listed,
    "search": searched,
    "update": updated,
    "delete": deleted,
    "delete_all": deleted_all,
    "delete_users": deleted_users,
    "history": flows.told_history,
    "batch_update": batch_updated,
    "batch_delete": batch_deleted,
}
"""The methods of `MemoryClient` and `AsyncMemoryClient` that do more than before."""


def _without(call: Call, ids: list[str]) -> Flow:
    answer = yield call.run
    for one in ids:
        call.collab.tap.gone(one)
    yield call.collab.bridge.flush
    return answer


def _ids(call: Call, scopes: list[dict[str, Any]]) -> Flow:
    found: list[str] = []
    try:
        for scope in scopes:
            page, more = 1, bool(scope)
            while more:
                answer = yield partial(call.bare, "get_all", filters=scope, page=page, page_size=PAGE)
                found += [str(one["id"]) for one in _items(answer)]
                more = isinstance(answer, Mapping) and bool(cast("Mapping[str, Any]", answer).get("next"))
                page += 1
    except Exception as error:  # a deletion is never held up by our bookkeeping
        _log.warning("cannot tell what `%s` deletes (%s)", call.name, type(error).__name__)
    return list(dict.fromkeys(found))


def _everybody(call: Call) -> Flow:
    try:
        answer = yield partial(call.bare, "users")
    except Exception as error:  # as above
        _log.warning("cannot tell whom `%s` deletes (%s)", call.name, type(error).__name__)
        return []
    named = [(_FIELD.get(str(one.get("type"))), one.get("name")) for one in _dicts(results_of(answer))]
    return [{field: name} for field, name in named if field and name]


def _reread(call: Call, memory_id: Any) -> Flow:
    try:
        now = yield partial(call.bare, "get", memory_id)
    except Exception as error:  # the update itself succeeded
        _log.warning("cannot read what was updated (%s)", type(error).__name__)
        return
    if isinstance(now, dict):
        _tell(call, cast("dict[str, Any]", now))


def _see(call: Call, named: Mapping[str, Any], answer: Any) -> None:
    scope, seen = _scope(named), call.collab.seen
    for one in _items(answer):
        payload = mapping.payload_of(one)
        version = mapping.version_of(payload)
        if seen.get(str(one["id"])) != version:
            _tell(call, one if mapping.owner_of(payload) else {**scope, **one})
    call.collab.tap.settle()


def _tell(call: Call, item: Mapping[str, Any]) -> None:
    seen, native_id, payload = call.collab.seen, str(item["id"]), mapping.payload_of(item)
    call.collab.tap.written(native_id, payload)
    seen[native_id] = mapping.version_of(payload)
    while len(seen) > MAX_SEEN:
        seen.pop(next(iter(seen)), None)


def _items(answer: Any) -> list[dict[str, Any]]:
    return [one for one in _dicts(results_of(answer)) if one.get("id") and one.get("memory")]


def _dicts(given: object) -> list[dict[str, Any]]:
    listed = cast("list[Any]", given) if isinstance(given, list) else []
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]


def _scope(named: Mapping[str, Any]) -> dict[str, Any]:
    filters = named.get("filters")
    inside: Mapping[str, Any] = cast("Mapping[str, Any]", filters) if isinstance(filters, Mapping) else {}
    found: dict[str, Any] = {field: named.get(field) or inside.get(field) for field in mapping.KINDS}
    return {field: value for field, value in found.items() if isinstance(value, (str, int)) and value}


def _batch(call: Call) -> list[dict[str, Any]]:
    return _dicts(call.arguments().get("memories"))


__all__ = ["HANDLERS", "MAX_SEEN"]
