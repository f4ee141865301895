"""What each of Mem0's methods does besides what it did before.

In:   the state of one wrapped object, and the call as the caller made it.
Out:  a flow: it yields the inner call and calls to the layer, and returns the answer.
      Exceptions of the inner call pass through as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

from collab_layer.errors import UnknownIdError
from collab_layer.ports.backend import MemoryBackend
from collab_layer_mem0 import mapping
from collab_layer_mem0.asked import owner_asked, wildcard_field
from collab_layer_mem0.bridge import Bridge, Told
from collab_layer_mem0.client import Kind, not_found
from collab_layer_mem0.lenient import fold
from collab_layer_mem0.locks import LoopLocks, Stripes
from collab_layer_mem0.merge import annotated, derived_id, item, merged, results_of
from collab_layer_mem0.refusals import DerivedReadOnlyError, WildcardIdError
from collab_layer_mem0.steps import Flow
from collab_layer_mem0.tap import Tap

Mode = Literal["merge", "annotate", "off"]


@dataclass
class Collab:
    """What belongs to one wrapped object.

    Attributes:
        kind: Which of Mem0's classes it is.
        bridge: To the layer.
        tap: On its stores; carries the outbox.
        backend: The store as the layer sees it.
        mode: What `search` does with what neighbours know.
        limit: At most so many items or facets are added.
        lenient: Calls in the form of Mem0 1.x are understood.
        seen: Versions of items that were told already, where answers are all we see.
    """

    kind: Kind
    bridge: Bridge
    tap: Tap
    backend: MemoryBackend
    mode: Mode = "merge"
    limit: int = 3
    lenient: bool = False
    stripes: Stripes = field(default_factory=Stripes)
    loop_locks: LoopLocks = field(default_factory=LoopLocks)
    seen: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def platform(self) -> bool:
        """Whether it talks to Mem0's service."""
        return self.kind in ("client", "async_client")


@dataclass
class Call:
    """One call of a method of Mem0's, as it was made."""

    collab: Collab
    name: str
    base: type
    it: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def prepare(self) -> dict[str, Any]:
        """Fold a 1.x call if that is wanted, refuse `*`, and name the arguments.

        Raises:
            WildcardIdError: An id is `*`.
        """
        if self.collab.lenient:
            self.kwargs = fold(self.name, self.kwargs, platform=self.collab.platform)
        named = self.arguments()
        field = wildcard_field(named)
        if field is not None:
            raise WildcardIdError(field, self.name)
        return named

    def arguments(self) -> dict[str, Any]:
        """The arguments by name, options and keywords flattened; empty if they do not fit."""
        try:
            bound = inspect.signature(getattr(self.base, self.name)).bind(self.it, *self.args, **self.kwargs)
        except TypeError:
            return {}  # the method itself will say so
        named = dict(bound.arguments)
        extra = named.pop("kwargs", {})
        options = named.pop("options", None)
        return {**named, **(options.model_dump(exclude_unset=True) if options is not None else {}), **extra}

    def run(self) -> Any:
        """The method as Mem0 has it."""
        return self.bare(self.name, *self.args, **self.kwargs)

    def bare(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Any method as Mem0 has it; what it writes is handed over afterwards."""
        method = getattr(self.base, name)
        if inspect.iscoroutinefunction(method):
            return self._awaited(method, args, kwargs)
        with self.collab.tap.inside(), self._attributed():
            return method(self.it, *args, **kwargs)

    async def _awaited(self, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self.collab.tap.inside(), self._attributed():
            return await method(self.it, *args, **kwargs)

    def _attributed(self) -> AbstractContextManager[None]:
        """Of what several people said an extracting `add` keeps no names: it is no person's memory."""
        named = self.arguments() if self.name == "add" else {}
        people = mapping.speakers(named.get("messages")) | {str(named[one]) for one in ("user_id",) if named.get(one)}
        return self.collab.tap.several() if len(people) > 1 and named.get("infer", True) else nullcontext()


def asked(call: Call) -> Flow:
    """`get_all`: only `*` is refused."""
    call.prepare()
    return (yield call.run)


def written(call: Call) -> Flow:
    """`add`, `delete_all`, `reset`: the tap saw it; hand it over, also if the call failed half way."""
    call.prepare()
    try:
        answer = yield call.run
    except Exception:
        yield call.collab.bridge.flush
        raise
    yield call.collab.bridge.flush
    return answer


def got(call: Call) -> Flow:
    """`get`: our own ids are answered by the layer, in Mem0's shape."""
    own = derived_id(call.arguments().get("memory_id"))
    if own is None:
        return (yield call.run)
    try:
        facet = yield partial(call.collab.bridge.derived, own)
    except UnknownIdError as error:
        if call.collab.platform:
            raise not_found(str(call.arguments()["memory_id"])) from error
        return None
    return item(facet, None)


def updated(call: Call) -> Flow:
    """`update`: our own ids are refused."""
    memory_id = call.arguments().get("memory_id")
    if derived_id(memory_id) is not None:
        raise DerivedReadOnlyError(str(memory_id))
    return (yield from written(call))


def deleted(call: Call) -> Flow:
    """`delete`: our own ids are forgotten by the layer."""
    memory_id = call.arguments().get("memory_id")
    own = derived_id(memory_id)
    if own is None:
        return (yield from written(call))
    try:
        yield partial(call.collab.bridge.forget, own)
    except UnknownIdError as error:
        missing = (
            not_found(str(memory_id)) if call.collab.platform else ValueError(f"Memory with id {memory_id} not found")
        )
        raise missing from error
    return {"message": "Memory deleted successfully!"}


def told_history(call: Call) -> Flow:
    """`history`: our own ids have none."""
    if derived_id(call.arguments().get("memory_id")) is not None:
        return []
    return (yield call.run)


def searched(call: Call) -> Flow:
    """`search`: the owner's own results, then what neighbours know."""
    named = call.prepare()
    answer = yield call.run
    return (yield from enriched(call, named, answer))


def enriched(call: Call, named: Mapping[str, Any], answer: Any) -> Flow:
    """Add to an answer what the mode asks for; the answer itself where there is nothing."""
    collab, query = call.collab, named.get("query")
    owner = owner_asked(named)
    if collab.mode == "off" or owner is None or named.get("top_k") == 0 or not isinstance(query, str):
        return answer
    if results_of(answer) is None:
        return answer
    told: Told = yield partial(collab.bridge.context, owner, query)
    facets = () if told.memory is None else told.memory.facets
    if collab.mode == "merge":
        return merged(answer, facets, collab.limit)
    degraded = (*told.degraded, *(() if told.memory is None else told.memory.degraded))
    return annotated(answer, facets, degraded, collab.limit)


Handler = Callable[[Call], Flow]
SELF_HOSTED: Mapping[str, Handler] = {
    "add": written,
    "get": got,
    "get_all": asked,
    "search": searched,
    "update": updated,
    "delete": deleted,
    "delete_all": written,
    "history": told_history,
    "reset": written,
}
"""The methods of `Memory` and `AsyncMemory` that do more than before."""


def sync_locked(name: str, base: type) -> Any:
    """`_update_memory` or `_delete_memory` under the lock of its memory id."""
    inner = cast("Callable[..., Any]", getattr(base, name))

    def alone(self: Any, memory_id: Any, *args: Any, **kwargs: Any) -> Any:
        with self._collab.stripes.of(str(memory_id)):
            return inner(self, memory_id, *args, **kwargs)

    return alone


def async_locked(name: str, base: type) -> Any:
    """The awaited form of `sync_locked`."""
    inner = cast("Callable[..., Any]", getattr(base, name))

    async def alone(self: Any, memory_id: Any, *args: Any, **kwargs: Any) -> Any:
        async with self._collab.loop_locks.here(self._collab.stripes.name(str(memory_id))):
            return await inner(self, memory_id, *args, **kwargs)

    return alone


__all__ = ["SELF_HOSTED", "Call", "Collab", "Handler", "Mode", "async_locked", "enriched", "searched", "sync_locked"]
