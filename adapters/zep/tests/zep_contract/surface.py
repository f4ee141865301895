"""Routes and body fields, read from the source of the SDK's generated clients."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from importlib import import_module

CLIENTS = {
    "graph": "graph.raw_client.RawGraphClient",
    "edge": "graph.edge.raw_client.RawEdgeClient",
    "node": "graph.node.raw_client.RawNodeClient",
    "episode": "graph.episode.raw_client.RawEpisodeClient",
    "observation": "graph.observation.raw_client.RawObservationClient",
    "user": "user.raw_client.RawUserClient",
    "user_group": "user_group.raw_client.RawUserGroupClient",
    "thread": "thread.raw_client.RawThreadClient",
    "message": "thread.message.raw_client.RawMessageClient",
    "lookup": "lookup.raw_client.RawLookupClient",
    "project": "project.raw_client.RawProjectClient",
    "task": "task.raw_client.RawTaskClient",
}
_REQUEST = re.compile(r'\.request\(\s*f?"([^"]+)",\s*method="(\w+)"')
_BODY = re.compile(r"json=\{(.*?)\n {12}\},", re.DOTALL)
_BODY_FIELD = re.compile(r'"(\w+)":\s')
_WHOLE_BODY = re.compile(r"json=convert_and_respect_annotation_metadata\(\s*object_=\w+,\s*annotation=(\w+)")
_PATH_PARAMETER = re.compile(r"\{encode_path_param\((\w+)\)\}")


@dataclass(frozen=True)
class Route:
    """One route of the API, as the SDK calls it."""

    operation: str
    method: str
    path: str
    body_fields: frozenset[str]

    def match(self, path: str) -> dict[str, str] | None:
        """The path parameters, if the path belongs to this route."""
        found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.path), path)
        return found.groupdict() if found else None


def derive_routes() -> list[Route]:
    """Read the routes; those with fewer parameters come first."""
    routes = []
    for prefix, place in CLIENTS.items():
        module, _, name = place.rpartition(".")
        client = getattr(import_module(f"zep_cloud.{module}"), name)
        for operation, method in inspect.getmembers(client, inspect.isfunction):
            source = "" if operation.startswith("_") else inspect.getsource(method)
            request = _REQUEST.search(source)
            if request is None:
                continue
            path = "/" + _PATH_PARAMETER.sub(r"{\1}", request[1])
            routes.append(Route(f"{prefix}.{operation}", request[2], path, frozenset(_fields(source))))
    return sorted(routes, key=lambda route: (route.path.count("{"), route.path))


def _fields(source: str) -> list[str]:
    body, whole = _BODY.search(source), _WHOLE_BODY.search(source)
    if whole is not None:
        return [str(field.alias or name) for name, field in getattr(_types(), whole[1]).model_fields.items()]
    return _BODY_FIELD.findall(body[1]) if body else []


def _types():
    return import_module("zep_cloud.types")


def surface() -> dict[str, list[str]]:
    """Every route with its body fields, to be kept and compared."""
    return {f"{route.method} {route.path}": sorted(route.body_fields) for route in derive_routes()}
