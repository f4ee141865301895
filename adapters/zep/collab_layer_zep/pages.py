"""Stable pages over lists whose own cursor promises nothing.

In:   a way to fetch a list by uuid, page by page; where the last page of ours ended.
Out:  the next records of the list, none twice and none left out.

Nobody says whether Zep's cursors count rows or point at one. A page of ours therefore begins
at the last uuid that was read; the cursor only says where to look, and is trusted if the page
there reaches back to that uuid. Else, and where the list is not in order, it is read anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from collab_layer_zep.refusals import ZepRejectedError

Row = dict[str, Any]
Fetch = Callable[[str | None], Awaitable[tuple[list[Row], str | None]]]
"""A cursor in; rows and the next cursor out."""


class Mark(NamedTuple):
    """Where a page ended: the last uuid, and the cursor of the page it was on."""

    uuid: str = ""
    cursor: str | None = None

    def __str__(self) -> str:
        return f"{self.uuid}@{self.cursor or ''}"


def mark_of(text: str) -> Mark:
    """Read a mark."""
    uuid, _, cursor = text.partition("@")
    return Mark(uuid, cursor or None)


async def after(fetch: Fetch, mark: Mark, limit: int) -> tuple[list[Row], Mark | None]:
    """Rows behind a mark by uuid, at most `limit`, and where to go on; None at the end."""
    taken: list[tuple[str | None, Row]] = []
    cursor, top, unsure = mark.cursor, "", mark.cursor is not None
    while len(taken) <= limit:
        try:
            rows, following = await fetch(cursor)
        except ZepRejectedError:
            if not unsure:
                raise
            rows, following = [], None  # the cursor is too old
        ids = [str(row["uuid"]) for row in rows]
        if unsure and not (ids and ids[0] <= mark.uuid):
            cursor, unsure = None, False
            continue
        unsure = False
        if ids != sorted(ids) or (ids and ids[0] <= top):
            return await _whole(fetch, mark, limit)
        top = ids[-1] if ids else top
        taken += [(cursor, row) for row in rows if str(row["uuid"]) > mark.uuid]
        if following is None or following == cursor:
            break
        cursor = following
    if len(taken) <= limit:
        return [row for _, row in taken], None
    where, last = taken[limit - 1]
    return [row for _, row in taken[:limit]], Mark(str(last["uuid"]), where)


async def _whole(fetch: Fetch, mark: Mark, limit: int) -> tuple[list[Row], Mark | None]:
    """The same of a list that is in another order: all of it, sorted here."""
    held: dict[str, Row] = {}
    cursor, seen = None, set[str]()
    while True:
        rows, cursor = await fetch(cursor)
        held |= {str(row["uuid"]): row for row in rows}
        if cursor is None or cursor in seen:
            break
        seen.add(cursor)
    rest = [held[uuid] for uuid in sorted(held) if uuid > mark.uuid]
    return rest[:limit], Mark(str(rest[limit - 1]["uuid"])) if len(rest) > limit else None


__all__ = ["Fetch", "Mark", "after", "mark_of"]
