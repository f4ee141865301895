"""See every write to a Mem0 store at the one place all of them pass, and hold the process lock.

In:   calls on `memory.vector_store`, `memory.entity_store` and `memory.embedding_model`.
Out:  the same calls, one at a time per memory object; `Change`s in the outbox, in the
      order in which the store took them.

The stand-ins pass everything else through, `isinstance` included. Embedded qdrant and
faiss lose or corrupt data when threads use them at once; the lock is for them.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from typing import Any

from collab_layer.ports.backend import Change
from collab_layer.types.entity import MemoryRecord, MemoryRef
from collab_layer_mem0 import mapping
from collab_layer_mem0.client import EVERYTHING, rows_of
from collab_layer_mem0.embedder import Recent

_log = logging.getLogger(__name__)
MAX_PENDING = 10_000
"""Changes kept while the layer cannot take them; older ones are left to `reconcile`."""
MAX_CHATS = 10_000
"""Memories of which it is remembered that several people said them."""
_LOCKED = frozenset(
    {"create_col", "search", "search_batch", "keyword_search", "get", "list", "list_cols", "col_info"}
    | {"insert", "update", "delete", "delete_col", "reset"}
)
_inside: ContextVar[bool] = ContextVar("collab_layer_mem0_inside", default=False)
_muted: ContextVar[bool] = ContextVar("collab_layer_mem0_muted", default=False)
_several: ContextVar[bool] = ContextVar("collab_layer_mem0_several", default=False)


class Outbox:
    """Changes on their way to the layer, oldest first; may be used from several threads."""

    def __init__(self, size: int = MAX_PENDING) -> None:
        self._waiting: deque[Change] = deque(maxlen=size)

    def put(self, change: Change) -> None:
        """Add one; the oldest makes room when the outbox is full."""
        self._waiting.append(change)

    def take(self, most: int = 500) -> list[Change]:
        """Remove and give the oldest ones, each memory as it was last seen."""
        taken: dict[str, Change] = {}
        for _ in range(min(most, len(self._waiting))):
            try:
                change = self._waiting.popleft()
            except IndexError:  # somebody else was quicker
                break
            taken.pop(change.ref.id, None)
            taken[change.ref.id] = change
        return list(taken.values())

    def put_back(self, changes: Sequence[Change]) -> None:
        """Return what could not be handed over to the front, as far as there is room."""
        room = max(0, (self._waiting.maxlen or 0) - len(self._waiting))
        self._waiting.extendleft(reversed(changes[len(changes) - min(room, len(changes)) :]))

    def __len__(self) -> int:
        return len(self._waiting)


class Tap:
    """What the stand-ins of one memory object share.

    Args:
        name: Of the backend, for refs.
        outbox: Where changes go.

    Attributes:
        lock: Held during every call on the vector store and the entity store.
        recent: Vectors that Mem0 computed, by text.
        nudge: Called after a write that did not come through the wrapper.
    """

    def __init__(self, name: str, outbox: Outbox | None = None) -> None:
        self.name, self.outbox = name, outbox or Outbox()
        self.lock, self.recent = RLock(), Recent()
        self.nudge: Callable[[], None] = lambda: None
        self._chats: dict[str, None] = {}  # memories that were extracted from what several people said

    def store(self, store: Any) -> Any:
        """A stand-in that locks and reports; a stand-in of ours is returned as it is."""
        return store if _is_stand_in(store) else _TappedStore(store, self)

    def locked(self, store: Any) -> Any:
        """A stand-in that locks only, for the entity store."""
        return store if _is_stand_in(store) else _LockedStore(store, self)

    def embedder(self, model: Any) -> Any:
        """A stand-in that remembers the vectors it passes on."""
        return model if _is_stand_in(model) else _HeardModel(model, self)

    @contextmanager
    def inside(self) -> Generator[None]:
        """While the wrapper runs one of Mem0's methods: it hands the changes over itself."""
        token = _inside.set(True)
        try:
            yield
        finally:
            _inside.reset(token)

    @contextmanager
    def muted(self) -> Generator[None]:
        """While we write derived items: that is no news."""
        token = _muted.set(True)
        try:
            yield
        finally:
            _muted.reset(token)

    @contextmanager
    def several(self) -> Generator[None]:
        """While Mem0 extracts from what several people said: it does not keep who said what."""
        token = _several.set(True)
        try:
            yield
        finally:
            _several.reset(token)

    def written(self, native_id: str, payload: Mapping[str, Any]) -> None:
        """A memory now reads so; one that is nobody's, or says nothing, is as good as gone."""
        if mapping.is_derived(payload):
            return
        if _several.get():
            self._chats[native_id] = None
            while len(self._chats) > MAX_CHATS:
                self._chats.pop(next(iter(self._chats)), None)
        record = self.record(native_id, payload)
        self._tell(Change(record.ref if record else MemoryRef(backend=self.name, id=native_id), record))

    def record(self, native_id: str, payload: Mapping[str, Any], score: float | None = None) -> MemoryRecord | None:
        """A stored payload as a record; what was extracted from several people's words is at most the chat's."""
        if native_id in self._chats:
            payload = mapping.of_the_chat(payload)
        return mapping.record(self.name, native_id, payload, score)

    def gone(self, native_id: str) -> None:
        """A memory is no more."""
        self._tell(Change(MemoryRef(backend=self.name, id=native_id), None))

    def _tell(self, change: Change) -> None:
        if not _muted.get():
            self.outbox.put(change)

    def settle(self) -> None:
        """Have waiting changes handed over, unless the wrapper is about to do so."""
        if not _inside.get() and len(self.outbox):
            self.nudge()


class _StandIn:
    """Passes every attribute to what it stands for, and is an instance of its class."""

    __slots__ = ("_it", "_tap")

    def __init__(self, it: Any, tap: Tap) -> None:
        object.__setattr__(self, "_it", it)
        object.__setattr__(self, "_tap", tap)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  so that isinstance holds
        return object.__getattribute__(self, "_it").__class__

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_it"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_it"), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(object.__getattribute__(self, "_it"), name)


class _LockedStore(_StandIn):
    """One call at a time."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name not in _LOCKED or not callable(found):
            return found
        tap: Tap = object.__getattribute__(self, "_tap")

        @functools.wraps(found)
        def alone(*args: Any, **kwargs: Any) -> Any:
            with tap.lock:
                return found(*args, **kwargs)

        return alone


class _TappedStore(_LockedStore):
    """One call at a time, and every write is told."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        report = _REPORTS.get(name)
        if report is None or not callable(found):
            return found
        tap: Tap = object.__getattribute__(self, "_tap")
        store: Any = object.__getattribute__(self, "_it")

        @functools.wraps(found)
        def told(*args: Any, **kwargs: Any) -> Any:
            with tap.lock:
                tell = report(tap, store, _named(found, args, kwargs))
                answer = found(*args, **kwargs)
                tell()
            tap.settle()
            return answer

        return told


class _HeardModel(_StandIn):
    """Remembers the vectors it passes on."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name not in ("embed", "embed_batch") or not callable(found):
            return found
        recent: Recent = object.__getattribute__(self, "_tap").recent

        @functools.wraps(found)
        def heard(*args: Any, **kwargs: Any) -> Any:
            answer: Any = found(*args, **kwargs)
            given: Any = next(iter(args or kwargs.values()), None)
            if name == "embed":
                recent.put(given, answer)
            else:
                for text, vector in zip(given, answer, strict=False):
                    recent.put(text, vector)
            return answer

        return heard


Report = Callable[[Tap, Any, Mapping[str, Any]], Callable[[], None]]
"""Looks at a call before it is made; what it returns tells of it once it succeeded."""


def _inserted(tap: Tap, store: Any, given: Mapping[str, Any]) -> Callable[[], None]:
    pairs: list[tuple[Any, Any]] = list(zip(given.get("ids") or (), given.get("payloads") or (), strict=False))

    def tell() -> None:
        for one, payload in pairs:
            tap.written(str(one), payload or {})

    return tell


def _updated(tap: Tap, store: Any, given: Mapping[str, Any]) -> Callable[[], None]:
    payload = given.get("payload")
    return lambda: None if payload is None else tap.written(str(given.get("vector_id")), payload)


def _deleted(tap: Tap, store: Any, given: Mapping[str, Any]) -> Callable[[], None]:
    return lambda: tap.gone(str(given.get("vector_id")))


def _cleared(tap: Tap, store: Any, given: Mapping[str, Any]) -> Callable[[], None]:
    try:
        ids = [row.id for row in rows_of(store.list(top_k=EVERYTHING))]
    except Exception as error:  # stores share no error class, and clearing must go on
        _log.warning("cannot tell what `%s` clears (%s); call layer.reconcile", tap.name, type(error).__name__)
        ids = []

    def tell() -> None:
        for one in ids:
            tap.gone(str(one))

    return tell


_REPORTS: Mapping[str, Report] = {
    "insert": _inserted,
    "update": _updated,
    "delete": _deleted,
    "delete_col": _cleared,
    "reset": _cleared,
}


def _named(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mapping[str, Any]:
    try:
        return inspect.signature(method).bind(*args, **kwargs).arguments
    except TypeError:
        return kwargs  # the call itself will say what is wrong with it


def _is_stand_in(thing: Any) -> bool:
    return issubclass(type(thing), _StandIn)


__all__ = ["MAX_PENDING", "Outbox", "Tap"]
