"""What can go wrong with Zep, as types a program can act on.

    BackendError
    ├── ZepAuthError       401, 403: the key is wrong, or may not do that
    ├── ZepVersionError    an SDK, an address or an id of Zep v3, where v4 is needed
    ├── ZepGoneError       404: the user, graph or fact does not exist
    ├── ZepRejectedError   400, 422: Zep takes the request for wrong
    │   └── ZepTooLargeError  413: too much in one request
    ├── ZepConflictError   (retryable) 409: look again, then decide; never sent again unseen
    ├── ZepBusyError       (retryable) 429: asks to wait
    ├── ZepTaskError       an asynchronous write ended as failed, or in part
    └── ZepResidueError    (ErasedPartlyError) erased as far as Zep's interface goes; `left` names what it keeps

A service that fails (5xx), cannot be reached or is too slow is `BackendDownError` or
`BackendTimeoutError` of the core. No error carries any text of a memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from collab_layer.errors import BackendError, ErasedPartlyError


class ZepAuthError(BackendError):
    """The key is missing, wrong, of another project, or does not allow the request."""

    code = "zep_auth"


class ZepVersionError(BackendError):
    """An SDK, an address or an id of Zep v3 was met; v4 is needed."""

    code = "zep_version"


class ZepGoneError(BackendError):
    """What the request was about does not exist, or not any more."""

    code = "zep_gone"


class ZepRejectedError(BackendError):
    """Zep takes the request for wrong; sending it again will not help."""

    code = "zep_rejected"


class ZepTooLargeError(ZepRejectedError):
    """The request holds more than Zep takes at once; shorten the facts, or send fewer."""

    code = "zep_too_large"


class ZepConflictError(BackendError):
    """Something else changed it, or the same request is still under way; look again first."""

    code = "zep_conflict"
    retryable = True


class ZepBusyError(BackendError):
    """Zep asks to wait; `after_s` says how long, where it said so."""

    code = "zep_busy"
    retryable = True

    def __init__(self, store: str, why: str, *, after_s: float | None = None) -> None:
        self.after_s = after_s
        super().__init__(store, why)


class ZepTaskError(BackendError):
    """An asynchronous write came to a bad end; nothing is known to be stored of it."""

    code = "zep_task"

    def __init__(self, store: str, task: str, why: str) -> None:
        self.task = task
        super().__init__(store, f"task `{task}` {why}")


class ZepResidueError(ErasedPartlyError):
    """Erased as far as Zep's interface goes; `left` names what still holds or retells it, by id."""

    code = "zep_residue"

    def __init__(self, store: str, left: Sequence[str], *, erased: int) -> None:
        self.left, self.erased = tuple(left), erased
        shown = "; ".join(self.left[:3]) + (f"; and {len(self.left) - 3} more" if len(self.left) > 3 else "")
        super().__init__(store, f"{erased} facts are erased, but Zep keeps {shown}")


__all__ = [
    "ZepAuthError",
    "ZepBusyError",
    "ZepConflictError",
    "ZepGoneError",
    "ZepRejectedError",
    "ZepResidueError",
    "ZepTaskError",
    "ZepTooLargeError",
    "ZepVersionError",
]
