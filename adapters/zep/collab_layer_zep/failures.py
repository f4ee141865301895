"""What the SDK and its HTTP client raise, as our errors that say what to do.

In:   an exception.
Out:  a `BackendError` of the right kind, with no text of a memory in it.

Zep's own words are left out, since they may quote what was sent; its code and the name of the
field are kept.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import httpx
from zep_cloud.core.api_error import ApiError
from zep_cloud.core.parse_error import ParsingError

from collab_layer.errors import BackendDownError, BackendError, BackendTimeoutError, CollabError
from collab_layer_zep.refusals import (
    ZepAuthError,
    ZepBusyError,
    ZepConflictError,
    ZepGoneError,
    ZepRejectedError,
    ZepTooLargeError,
    ZepVersionError,
)
from collab_layer_zep.versions import ADDRESS, END_OF_V3


@contextmanager
def failures(store: str) -> Generator[None]:
    """Turn what is raised inside into our errors.

    Raises:
        BackendTimeoutError: No answer in time.
        BackendDownError: No connection, a failing service, or an answer that cannot be read.
        BackendError: One of `refusals`, by status.
    """
    try:
        yield
    except CollabError:
        raise
    except httpx.TimeoutException as error:
        raise BackendTimeoutError(store, "Zep did not answer in time") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise BackendDownError(store, f"Zep cannot be reached ({type(error).__name__})") from error
    except ParsingError as error:
        raise BackendDownError(store, f"Zep's answer cannot be read (status {error.status_code})") from error
    except ApiError as error:
        raise by_status(store, error) from error


def by_status(store: str, error: ApiError) -> BackendError:
    """Our error for an answer of Zep's."""
    status = int(error.status_code or 0)
    code, param = _said(error.body)
    shown = ", ".join(part for part in (str(status), code, param and f"`{param}`") if part)
    if code == "invalid_identifier":
        why = f"Zep takes an id for none of its own ({shown}); ids of v3 are no addresses in v4, use uuids"
        return ZepVersionError(store, why)
    if status == 404 and not code:
        why = f"there is no v4 API at that address ({shown}); `base_url` is {ADDRESS}, and v3 ends on {END_OF_V3}"
        return ZepVersionError(store, why)
    if status == 429:
        return ZepBusyError(store, "Zep asks to wait (429)", after_s=_after(error.headers))
    kinds: dict[int, tuple[type[BackendError], str]] = {
        401: (ZepAuthError, "Zep refused the key; check `api_key` or ZEP_API_KEY, and that it is of this project"),
        403: (ZepAuthError, "the key may not do that; see the plan and the policies of its project"),
        404: (ZepGoneError, "Zep does not have it, or not any more"),
        408: (BackendTimeoutError, "Zep gave up on it"),
        409: (ZepConflictError, "something else changed it, or the same request is under way"),
        413: (ZepTooLargeError, "that is more than Zep takes at once; shorten the facts, or send fewer"),
    }
    if status in kinds:
        kind, why = kinds[status]
        return kind(store, f"{why} ({shown})")
    if 400 <= status < 500:
        hint = "; its attributes must be defined by the graph's ontology" if "attributes" in (param or "") else ""
        return ZepRejectedError(store, f"Zep takes the request for wrong ({shown}){hint}")
    return BackendDownError(store, f"Zep failed, or that is no Zep ({shown})")


def _said(body: Any) -> tuple[str | None, str | None]:
    """Code and field in an answer's body, in whichever form the SDK hands it over."""
    held = cast("Mapping[str, Any]", body).get("error") if isinstance(body, Mapping) else getattr(body, "error", None)
    if isinstance(held, Mapping):
        found = cast("Mapping[str, Any]", held)
        return _short(found.get("code")), _short(found.get("param"))
    return _short(getattr(held, "code", None)), _short(getattr(held, "param", None))


def _short(value: object) -> str | None:
    return value[:80] if isinstance(value, str) and value else None


def _after(headers: Any) -> float | None:
    held = cast("Mapping[str, str]", headers or {})
    given = {key.lower(): value for key, value in held.items()}.get("retry-after", "")
    try:
        return max(0.0, float(given))
    except ValueError:
        return None


__all__ = ["by_status", "failures"]
