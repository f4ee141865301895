"""What the wrapper refuses, as errors that callers of Mem0 already catch.

Mem0 reports a bad id as `ValueError`, so both classes are one as well.
"""

from __future__ import annotations

from collab_layer.errors import InputError


class WildcardIdError(InputError, ValueError):
    """`*` was given as an id; Mem0 would take it for every owner, in `delete_all` too."""

    code = "wildcard_id"

    def __init__(self, field: str, method: str) -> None:
        self.field, self.method = field, method
        super().__init__(
            f"{method}: `*` is refused as {field}, because some stores take it for every owner. "
            "Name one owner; to clear the whole store call reset()"
        )


class DerivedReadOnlyError(InputError, ValueError):
    """A derived item cannot be edited: its text follows from its sources."""

    code = "derived_read_only"

    def __init__(self, memory_id: str) -> None:
        self.memory_id = memory_id
        super().__init__(
            f"`{memory_id}` was derived from the memories of neighbours and cannot be updated. "
            "Update the memory it came from, or delete it to forget it"
        )


__all__ = ["DerivedReadOnlyError", "WildcardIdError"]
