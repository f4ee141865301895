"""Make a Zep client collaborative: the same class over the same connection, no second client.

In:   a `Zep` or `AsyncZep`, and a layer of the same kind.
Out:  an object of a subclass that has the class's name and shares its connection. Its `thread`
      and `graph` answer as before and, where a grant allows it, with a delimited section.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from collab_layer import AsyncCollabLayer, CollabLayer
from collab_layer.errors import InputError
from collab_layer.types.entity import Entity
from collab_layer.types.facet import Facet
from collab_layer_zep import section
from collab_layer_zep.asking import Asker, Layer, Question, Told
from collab_layer_zep.backend import LEDGER, NAME, ZepBackend
from collab_layer_zep.client import AsyncZep, Zep, edge_of
from collab_layer_zep.section import CHARS_PER_TOKEN

Z = TypeVar("Z")
DEFAULT_PATH = "collab.db"
CHARS = (60 * CHARS_PER_TOKEN, 32_000 * CHARS_PER_TOKEN)
"""Least and most of `budget_chars`: what the layer takes as a budget, in characters."""
_STATE = "_collab"
Named = Mapping[str, Any]
"""A call's arguments by name."""


class Way(NamedTuple):
    """What one method does besides what it did: what it asks, what it makes of both answers, what it tells first."""

    ask: Callable[[Named, Any], Question | None]
    add: Callable[[Named, Any, Told, Settings], Any]
    tell: Callable[[Named, Any], Question | None] = lambda named, answer: None


class Settings(NamedTuple):
    """What belongs to one wrapped client."""

    asker: Asker
    budget_chars: int
    limit: int


def collaborative(
    zep: Z,
    layer: Layer | None = None,
    *,
    principal: Entity | str | None = None,
    purpose: str | None = None,
    budget_chars: int = 2_000,
    limit: int = 3,
    timeout_s: float = 2.0,
    path: str = DEFAULT_PATH,
    tenant: str = "default",
    name: str = NAME,
    write: bool = False,
    ledger: str = LEDGER,
    graphs: Mapping[str, Entity | str] | None = None,
    speakers: Mapping[str, Entity | str] | None = None,
) -> Z:
    """Give a Zep client what neighbours know.

    `thread.get_context`, the context of `thread.add_messages` and `graph.get_context` carry a
    section behind their own text; `graph.search_edges` has at most `limit` more edges, with ids
    `collab:…`, behind those of its first page. Without a grant, and whenever the layer fails, the
    answer is that of `zep`; a failure is said in the field `collab` of answers that can have one.

    Args:
        zep: A `Zep` or `AsyncZep` of zep-cloud 4. It stays as it was, and can be wrapped again.
        layer: An open `CollabLayer` for a `Zep`, an `AsyncCollabLayer` for an `AsyncZep`. Left out,
            a `CollabLayer` is opened at `path` and closed with the wrapped client.
        principal: Who reads; the owner of the thread or graph if None.
        purpose: What for; compared with the purpose of grants.
        budget_chars: Of a section, or of the added edges together, in [240, 128000].
        limit: At most so many edges, >= 0.
        timeout_s: How long an answer waits for the layer, in seconds, > 0.
        path: Where to open a layer if none is given.
        tenant: Of the layer opened at `path`.
        name: Of the store within the layer.
        write: Let the layer write derived items, into graphs named `collab:for:…`.
        ledger: SQLite file for what is written.
        graphs: Standalone graphs by uuid, where their names do not say whose they are.
        speakers: Whom the names in threads stand for. What they say through `thread.add_messages` in a
            thread of another user is kept by the layer as their own memory.

    Raises:
        InputError: Another class, a client that is collaborative already, a layer of the other
            kind, or a setting out of range.
        ZepVersionError: A client of the v3 API.
    """
    if not isinstance(zep, (Zep, AsyncZep)):
        raise InputError(f"{type(zep).__name__} is none of zep_cloud's Zep, AsyncZep")
    if _STATE in vars(zep):
        raise InputError("this client is collaborative already; wrap the one that it was made from")
    if not CHARS[0] <= budget_chars <= CHARS[1] or limit < 0 or timeout_s <= 0:
        raise InputError(f"budget_chars must be in [{CHARS[0]}, {CHARS[1]}], limit at least 0, timeout_s above 0")
    store = ZepBackend(zep, name=name, write=write, ledger=ledger, graphs=graphs, speakers=speakers)
    reader = None if principal is None else Entity.parse(principal)
    opened = _layer(zep, layer, path, tenant)
    named = {uuid.lower(): Entity.parse(owner) for uuid, owner in (graphs or {}).items()}
    asker = Asker(
        opened, store, principal=reader, purpose=purpose, budget_chars=budget_chars, timeout_s=timeout_s, graphs=named
    )
    if isinstance(opened, CollabLayer) and opened.principal is None:
        opened.attach(store)
        asker.attached = True
    wrapped = _wrapped(zep, Settings(asker, budget_chars, limit))
    if layer is None and isinstance(opened, CollabLayer):
        weakref.finalize(wrapped, opened.close)
    return wrapped


def backend_of(zep: object) -> ZepBackend:
    """The store behind a collaborative client, for `layer.index` and `layer.reconcile`.

    Raises:
        InputError: It is not collaborative.
    """
    if _STATE not in vars(zep):
        raise InputError("this client is not collaborative; pass it to `collaborative` first")
    return cast("Settings", vars(zep)[_STATE]).asker.store


def _layer(zep: object, layer: Layer | None, path: str, tenant: str) -> Layer:
    if isinstance(zep, AsyncZep) and not isinstance(layer, AsyncCollabLayer):
        raise InputError("an AsyncZep belongs to one event loop: pass an AsyncCollabLayer of that loop")
    if isinstance(zep, Zep) and isinstance(layer, AsyncCollabLayer):
        raise InputError("a Zep needs a CollabLayer, not an AsyncCollabLayer")
    return CollabLayer.open(path, tenant=tenant) if layer is None else layer


def _wrapped(zep: Any, settings: Settings) -> Any:
    views: dict[str, Any] = {}
    for name in WAYS:
        inner: object = getattr(zep, name)
        views[name] = _copy(inner, _methods(type(inner), name), settings)
    client: object = zep
    return _copy(client, _properties(type(client)), settings, views)


def _copy(inner: Any, cls: Any, settings: Settings, views: Mapping[str, Any] | None = None) -> Any:
    """The same state under another class: the connection is shared."""
    made = cls.__new__(cls)
    made.__dict__ = {**vars(inner), _STATE: settings} | ({} if views is None else {"_collab_views": views})
    return made


@functools.cache
def _properties(base: type) -> type:
    body: dict[str, Any] = {name: property(functools.partial(_view, name=name)) for name in WAYS}
    return _subclass(base, body)


def _view(self: object, name: str) -> object:
    return cast("dict[str, object]", vars(self)["_collab_views"])[name]


@functools.cache
def _methods(base: type, client: str) -> type:
    return _subclass(base, {name: _override(getattr(base, name), way) for name, way in WAYS[client].items()})


def _subclass(base: type, body: Mapping[str, Any]) -> type:
    dressed = {"__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__}
    return type(base.__name__, (base,), {**body, **dressed})


def _override(inner: Callable[..., Any], way: Way) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(inner):

        @functools.wraps(inner)
        async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
            answer = await inner(self, *args, **kwargs)
            named, settings = _named(inner, self, args, kwargs), _settings(self)
            if (told := way.tell(named, answer)) is not None:
                await settings.asker.awaited(told)
            question = way.ask(named, answer)
            if question is None:
                return answer
            return way.add(named, answer, await settings.asker.awaited(question), settings)

        return awaited

    @functools.wraps(inner)
    def blocking(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = inner(self, *args, **kwargs)
        named, settings = _named(inner, self, args, kwargs), _settings(self)
        if (told := way.tell(named, answer)) is not None:
            settings.asker.blocking(told)
        question = way.ask(named, answer)
        if question is None:
            return answer
        return way.add(named, answer, settings.asker.blocking(question), settings)

    return blocking


def _settings(view: object) -> Settings:
    return cast("Settings", vars(view)[_STATE])


def _named(inner: Callable[..., Any], view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Named:
    """The arguments that were given, by name; the SDK's mark for an omitted one is left out."""
    given = inspect.signature(inner).bind(view, *args, **kwargs).arguments
    return {key: value for key, value in given.items() if value is not None and value is not ...}


# -- what each method asks, and what it adds -----------------------------------------------------


def _ask_thread(named: Named, answer: Any) -> Question | None:
    return lambda asker: asker.thread(str(named["thread_uuid"]))


def _ask_added(named: Named, answer: Any) -> Question | None:
    if answer.context is None:
        return None
    words = "\n".join(str(getattr(one, "content", None) or "") for one in answer.messages or ())
    return lambda asker: asker.thread(str(named["thread_uuid"]), words)


def _tell_added(named: Named, answer: Any) -> Question | None:
    said = [one for one in answer.messages or () if one.name]
    return (lambda asker: asker.heard(str(named["thread_uuid"]), said)) if said else None


def _ask_graph(named: Named, answer: Any) -> Question | None:
    if _narrow(named):
        return None
    return lambda asker: asker.graph(str(named["graph_uuid"]), str(named["query"]))


def _narrow(named: Named) -> bool:
    """Whether it asks for another page, or for what nobody else's fact can meet."""
    return any(name in named for name in ("cursor", "filters", "center_node_uuid", "bfs_origin_node_uuids"))


def _with_section(named: Named, answer: Any, told: Told, settings: Settings) -> Any:
    """An answer with a context, and a section behind it; the answer itself where there is nothing to say."""
    chars = section.room(answer.context, settings.budget_chars, named.get("max_characters"))
    text, facets = section.block(told.memory, chars)
    degraded = (*told.degraded, *(() if told.memory is None else told.memory.degraded))
    if not text and not degraded:
        return answer
    changed: dict[str, Any] = {"collab": _marks(facets, degraded)}
    if text:
        changed["context"] = section.joined(answer.context, text)
    return answer.model_copy(update=changed)


def _with_edges(named: Named, answer: Any, told: Told, settings: Settings) -> Any:
    """A page with at most `limit` more edges; the page itself where there is nothing to add."""
    own = list(answer.items or ())
    facets = () if told.memory is None else told.memory.facets
    new = section.unsaid([one.fact for one in own], facets, settings.limit, settings.budget_chars)
    if not new:
        return answer
    scored = zip(new, section.scores([one.score for one in own], new), strict=True)
    return dataclasses.replace(
        answer, items=[*own, *(edge_of(**section.edge(facet, score)) for facet, score in scored)]
    )


def _marks(facets: tuple[Facet, ...], degraded: tuple[str, ...]) -> dict[str, Any]:
    return {"facets": [facet.id for facet in facets], "degraded": list(degraded)}


WAYS: Mapping[str, Mapping[str, Way]] = {
    "thread": {
        "get_context": Way(_ask_thread, _with_section),
        "add_messages": Way(_ask_added, _with_section, _tell_added),
    },
    "graph": {
        "get_context": Way(_ask_graph, _with_section),
        "search_edges": Way(_ask_graph, _with_edges),
    },
}
"""The clients and methods that do more than before."""

__all__ = ["CHARS", "backend_of", "collaborative"]
