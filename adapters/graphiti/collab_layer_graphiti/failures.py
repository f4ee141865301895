"""What a driver raises, as our errors that say what to do; no text of a memory in them.

In:   an exception of redis or of Neo4j's driver.
Out:  a `BackendError` of the right kind.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from neo4j.exceptions import AuthError, DriverError, Neo4jError, ServiceUnavailable
from redis import exceptions as redis_errors

from collab_layer.errors import BackendDownError, BackendError, BackendTimeoutError, CollabError

EMPTY_KEY = "empty key"
"""In FalkorDB's answer to a read of a graph that does not exist."""

_SAID: tuple[tuple[str, type[BackendError], str], ...] = (
    ("unknown command", BackendError, "{place} is a Redis without the FalkorDB module; start it with --loadmodule "
     "falkordb.so, or connect to a FalkorDB"),
    ("timed out", BackendTimeoutError, "{place} stopped the query by its own limit; raise TIMEOUT_DEFAULT and "
     "TIMEOUT_MAX there (GRAPH.CONFIG SET)"),
    ("wrong kind of value", BackendError, "its key `{graph}` holds something that is no graph; choose another `graph`"),
    ("used memory >", BackendError, "{place} has no memory left; raise its `maxmemory`, or free some"),
    ("consumption exceeded", BackendError, "the query needs more memory than {place} allows; raise QUERY_MEM_CAPACITY"),
    ("max pending queries", BackendDownError, "{place} has too many queries waiting"),
    ("dimension", BackendError, "its vectors have another length than the embedder's; use the embedder that made them"),
)  # fmt: skip


@contextmanager
def failures(store: str, place: str, graph: str) -> Generator[None]:
    """Turn what a driver raises into our errors.

    Args:
        store: Name of the backend.
        place: Where the server is.
        graph: Name of the graph.

    Raises:
        BackendTimeoutError: No answer in time.
        BackendDownError: It cannot be reached, or is still loading.
        BackendError: It refused the password or the query.
    """
    try:
        yield
    except CollabError:
        raise
    except (TimeoutError, redis_errors.TimeoutError) as error:
        raise BackendTimeoutError(store, f"{place} did not answer in time") from error
    except (redis_errors.AuthenticationError, redis_errors.AuthorizationError, AuthError) as error:
        raise BackendError(store, f"{place} wants another password; check `password` and `username`") from error
    except redis_errors.NoPermissionError as error:
        raise BackendError(store, f"{place} does not let this user do that; see its ACL") from error
    except redis_errors.BusyLoadingError as error:
        raise BackendDownError(store, f"{place} is still loading its data") from error
    except redis_errors.ReadOnlyError as error:
        raise BackendError(store, f"{place} is a replica and takes no writes; connect to its master") from error
    except (redis_errors.ConnectionError, ServiceUnavailable, OSError) as error:
        raise BackendDownError(store, f"{place} cannot be reached") from error
    except (redis_errors.ResponseError, Neo4jError) as error:
        raise _refused(store, place, graph, str(error)) from error
    except (redis_errors.RedisError, DriverError) as error:
        raise BackendError(store, f"{place} failed with {type(error).__name__}") from error


def _refused(store: str, place: str, graph: str, said: str) -> BackendError:
    words = said.lower()
    for mark, kind, why in _SAID:
        if mark in words:
            return kind(store, why.format(place=place, graph=graph))
    return BackendError(store, f"{place} refused the query")


__all__ = ["EMPTY_KEY", "failures"]
