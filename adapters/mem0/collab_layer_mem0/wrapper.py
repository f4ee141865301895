"""Make a Mem0 object collaborative: the same class, the same state, no second client.

In:   a `Memory`, `AsyncMemory`, `MemoryClient` or `AsyncMemoryClient`, and a layer.
Out:  an object of a subclass that has the base's name and shares the state of the one
      given. Its methods have the base's signatures and docstrings.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from collab_layer import AsyncCollabLayer, CollabLayer
from collab_layer.errors import InputError
from collab_layer.ports.backend import MemoryBackend
from collab_layer_mem0 import flows, platform
from collab_layer_mem0.backend import NAME, backend_for
from collab_layer_mem0.bridge import AwaitedBridge, BlockingBridge, Bridge
from collab_layer_mem0.client import CLASSES, Kind, kind_of, oss_config
from collab_layer_mem0.flows import Call, Collab, Handler, Mode
from collab_layer_mem0.steps import drive, drive_async
from collab_layer_mem0.tap import Tap

M = TypeVar("M")
Layer = CollabLayer | AsyncCollabLayer
DEFAULT_PATH = "collab.db"
MIN_BUDGET = 60
_STATE = "_collab"


def collaborative(
    memory: M,
    layer: Layer | None = None,
    *,
    mode: Mode = "merge",
    path: str = DEFAULT_PATH,
    tenant: str = "default",
    name: str = NAME,
    limit: int = 3,
    timeout_s: float = 0.25,
    budget_tokens: int = 400,
    lenient: bool = False,
    write: bool = False,
) -> M:
    """Give a Mem0 object what its neighbours know.

    `add`, `update`, `delete`, `delete_all` and `reset` feed the graph. `search` answers as
    before and, where a grant allows it, with what neighbours know. Without a grant, and
    whenever the layer fails, its answer is that of `memory`.

    Args:
        memory: Any of Mem0's four classes. It stays usable; its writes are seen too.
        layer: An open layer. Left out, one is opened at `path` and closed with the memory.
        mode: `merge` adds items after the owner's own, with ids `collab:...`; `annotate`
            adds a key `collab`; `off` only feeds the graph.
        path: Where to open a layer if none is given.
        tenant: Of the layer opened at `path`.
        name: Of the store within the layer.
        limit: At most so many items or facets, >= 0.
        timeout_s: How long a search waits for the layer, in seconds, > 0.
        budget_tokens: What the layer may spend on one search, in tokens, >= 60.
        lenient: Also take calls written for Mem0 1.x.
        write: Let the layer write derived items into the store, under `agent_id="collab"`.

    Raises:
        InputError: Another class, an object that is collaborative already, a setting out of
            range, or an `AsyncCollabLayer` for a blocking class.
    """
    kind = kind_of(memory)
    if _STATE in vars(memory):
        raise InputError("this Mem0 object is collaborative already; use the object that was returned for it")
    cls: Any = subclass(type(memory))
    wrapped = cls.__new__(cls)
    wrapped.__dict__ = vars(memory)
    settings = {"mode": mode, "limit": limit, "lenient": lenient}
    bridged = {"timeout_s": timeout_s, "budget_tokens": budget_tokens}
    _install(memory, kind, layer, path=path, tenant=tenant, name=name, write=write, settings=settings, bridged=bridged)
    return cast("M", wrapped)


def backend_of(memory: object) -> MemoryBackend:
    """The store behind a collaborative object, for `layer.index` and `layer.reconcile`.

    Raises:
        InputError: It is not collaborative.
    """
    if _STATE not in vars(memory):
        raise InputError("this object is not collaborative; pass it to `collaborative` first")
    return _state(memory).backend


def _state(memory: object) -> Collab:
    return cast("Collab", vars(memory)[_STATE])


def _install(
    memory: Any,
    kind: Kind,
    layer: Layer | None,
    *,
    path: str,
    tenant: str,
    name: str,
    write: bool,
    settings: dict[str, Any],
    bridged: dict[str, Any],
) -> None:
    """Check everything, then change the object's state in one go."""
    if settings["mode"] not in ("merge", "annotate", "off"):
        raise InputError(f"the mode {settings['mode']!r} is none of merge, annotate, off")
    if settings["limit"] < 0 or bridged["timeout_s"] <= 0 or bridged["budget_tokens"] < MIN_BUDGET:
        raise InputError(f"limit must be at least 0, timeout_s above 0, budget_tokens at least {MIN_BUDGET}")
    _check_layer(kind, layer)
    tap = Tap(name)
    backend = backend_for(memory, name=name, write=write, tap=tap, recent=tap.recent)
    opened = CollabLayer.open(path, tenant=tenant) if layer is None else layer
    bridge = _bridge(kind, opened, name, tap, owned=layer is None, **bridged)
    bridge.attach(backend)
    tap.nudge = bridge.nudge
    vars(memory)[_STATE] = Collab(kind, bridge, tap, backend, **settings)
    for field, stand_in in (("vector_store", tap.store), ("embedding_model", tap.embedder)):
        if field in vars(memory):
            vars(memory)[field] = stand_in(vars(memory)[field])


def _check_layer(kind: Kind, layer: Layer | None) -> None:
    if kind in ("memory", "client") and isinstance(layer, AsyncCollabLayer):
        raise InputError("a blocking Mem0 class needs a CollabLayer, not an AsyncCollabLayer")
    if kind == "async_client" and not isinstance(layer, AsyncCollabLayer):
        raise InputError("an AsyncMemoryClient belongs to one event loop: pass an AsyncCollabLayer of that loop")


def _bridge(kind: Kind, layer: Layer, name: str, tap: Tap, *, owned: bool, **bridged: Any) -> Bridge:
    if kind in ("memory", "client"):
        return BlockingBridge(layer, name, tap.outbox, owned=owned, **bridged)
    blocking = isinstance(layer, CollabLayer)
    return AwaitedBridge(layer, name, tap.outbox, blocking=blocking, owned=owned, **bridged)


@functools.cache
def subclass(base: type) -> type:
    """The collaborative subclass of one of Mem0's classes; it has the base's name."""
    self_hosted = issubclass(base, (CLASSES["memory"], CLASSES["async_memory"]))
    handlers = flows.SELF_HOSTED if self_hosted else platform.HANDLERS
    body: dict[str, Any] = {name: _override(base, name, handler) for name, handler in handlers.items()}
    if self_hosted:
        body |= {
            "vector_store": _stood_in("vector_store", lambda tap: tap.store),
            "embedding_model": _stood_in("embedding_model", lambda tap: tap.embedder),
            "entity_store": property(_entity_store(base)),
            "close": _closing(base),
        }
        body |= {name: _alone(base, name) for name in ("_update_memory", "_delete_memory") if hasattr(base, name)}
    return type(base)(base.__name__, (base,), _dressed(base, body))


def _dressed(base: type, body: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__}


def _override(base: type, name: str, handler: Handler) -> Callable[..., Any]:
    inner = getattr(base, name)

    if inspect.iscoroutinefunction(inner):

        @functools.wraps(inner)
        async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
            return await drive_async(handler(Call(_state(self), name, base, self, args, kwargs)))

        return awaited

    @functools.wraps(inner)
    def blocking(self: Any, *args: Any, **kwargs: Any) -> Any:
        return drive(handler(Call(_state(self), name, base, self, args, kwargs)))

    return blocking


def _alone(base: type, name: str) -> Callable[..., Any]:
    inner = getattr(base, name)
    lock = flows.async_locked if inspect.iscoroutinefunction(inner) else flows.sync_locked
    return functools.wraps(inner)(lock(name, base))


def _stood_in(field: str, make: Callable[[Tap], Callable[[Any], Any]]) -> property:
    """The state's own field, always behind a stand-in: also after `reset` made a new store."""

    def read(self: Any) -> Any:
        if field not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {field!r}")
        if _STATE in vars(self):
            vars(self)[field] = make(_state(self).tap)(vars(self)[field])
        return cast("Any", vars(self)[field])

    def write(self: Any, value: Any) -> None:
        vars(self)[field] = value

    return property(read, write)


def _entity_store(base: type) -> Callable[[Any], Any]:
    inner = cast("property", inspect.getattr_static(base, "entity_store")).fget

    def read(self: Any) -> Any:
        store = cast("Callable[[Any], Any]", inner)(self)
        return _state(self).tap.locked(store) if _STATE in vars(self) else store

    return read


def _closing(base: type) -> Callable[[Any], Any]:
    inner = cast("Any", base).close

    @functools.wraps(inner)
    def close(self: Any) -> Any:
        answer = inner(self)
        _state(self).bridge.close()
        return answer

    return close


def _constructed(kind: Kind) -> Any:
    """A class like Mem0's own that makes itself collaborative, for frameworks that call the class."""
    mem0_class: Any = CLASSES[kind]
    base = subclass(mem0_class)

    def construct(self: Any, config: Any = None, layer: Layer | None = None, **settings: Any) -> None:
        mem0_class.__init__(self, *(() if config is None else (config,)))
        bare = mem0_class.__new__(mem0_class)
        bare.__dict__ = vars(self)
        collaborative(bare, layer, **settings)

    def from_config(cls: Any, config_dict: dict[str, Any], layer: Layer | None = None, **settings: Any) -> Any:
        """As Mem0's own, with one more key: `collab`, the settings of `collaborative`."""
        plain = {key: value for key, value in config_dict.items() if key != "collab"}
        return cls(oss_config(plain), layer, **{**config_dict.get("collab", {}), **settings})

    body = {"__init__": construct, "from_config": classmethod(from_config)}
    return type(base)(base.__name__, (base,), _dressed(base, body))


Memory: Any = _constructed("memory")
"""Mem0's `Memory` for frameworks that construct it: `Memory(config, layer=..., mode=...)`."""
AsyncMemory: Any = _constructed("async_memory")
"""Mem0's `AsyncMemory`, likewise."""

__all__ = ["DEFAULT_PATH", "AsyncMemory", "Layer", "Memory", "backend_of", "collaborative", "subclass"]
