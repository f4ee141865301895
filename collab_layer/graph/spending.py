"""What each tenant spent on language models: reserved before a call, put right after it.

A reservation is an overestimate that stays if the process dies before it is settled, so a
cap is never overrun by a crash. Reservations of one tenant and role are made one after the
other, so it is not overrun by a crowd either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Text, bindparam, func, select

from collab_layer.graph.engine import insert_of
from collab_layer.graph.lean import Lean
from collab_layer.graph.tables import spending
from collab_layer.types.asking import Role, Spent
from collab_layer.types.time import DAY

_EPOCH = date(1970, 1, 1)
_S = spending.c
_COUNTED = ("calls", "failed", "input_tokens", "output_tokens")
_ALONE = Lean(select(func.pg_advisory_xact_lock(func.hashtext(bindparam("name", type_=Text)))))
_SPENT = Lean(
    select(func.sum(_S.calls).label("calls"), func.sum(_S.input_tokens + _S.output_tokens).label("tokens")).where(
        _S.tenant == bindparam("tenant"), _S.day == bindparam("day"), _S.role == bindparam("role")
    )
)


@dataclass(frozen=True, slots=True)
class Account:
    """One row: a tenant's spending on one stage with one model on one day."""

    tenant: str
    day: int
    role: Role
    stage: str
    model: str

    @classmethod
    def at(cls, tenant: str, now: int, role: Role, stage: str, model: str) -> Account:
        """The account of a moment, microseconds."""
        return cls(tenant, now // DAY, role, stage, model[:200])


@dataclass(frozen=True, slots=True)
class Cost:
    """Requests, and tokens in and out."""

    calls: int
    input_tokens: int
    output_tokens: int

    @property
    def tokens(self) -> int:
        """In and out."""
        return self.input_tokens + self.output_tokens

    def __sub__(self, other: Cost) -> Cost:
        return Cost(
            self.calls - other.calls,
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class Caps:
    """The most of a day; None is no cap."""

    calls: int | None = None
    tokens: int | None = None

    def over(self, calls: int, tokens: int, cost: Cost) -> str | None:
        """Which cap that cost would overrun, in words; None if it fits."""
        if self.calls is not None and calls + cost.calls > self.calls:
            return f"{calls} of {self.calls} calls of today are used"
        if self.tokens is not None and tokens + cost.tokens > self.tokens:
            return f"{tokens} of {self.tokens} tokens of today are used"
        return None


def reserve(connection: Connection, account: Account, caps: Caps, costs: Sequence[Cost]) -> Cost | str:
    """Take the first of several costs that fits out of the day's budget; or why not even the last one does.

    Args:
        connection: A write transaction; other reservations wait until it ends.
        account: Whose.
        caps: Of the role, over all stages and models.
        costs: From the dearest to the cheapest; never empty.
    """
    _one_after_another(connection, account)
    calls, tokens = spent(connection, account)
    over = ""
    for cost in costs:
        over = caps.over(calls, tokens, cost)
        if over is None:
            add(connection, account, cost)
            return cost
    return over


def _one_after_another(connection: Connection, account: Account) -> None:
    if connection.dialect.name != "sqlite":  # there a writer is alone
        name = f"spending {account.role} {account.tenant}"
        _ALONE.run(connection, {"name": name})


def spent(connection: Connection, account: Account) -> tuple[int, int]:
    """Calls and tokens of the role on that day, all stages and models."""
    [row] = _SPENT.rows(connection, {"tenant": account.tenant, "day": account.day, "role": account.role})
    return int(row.calls or 0), int(row.tokens or 0)


def add(connection: Connection, account: Account, cost: Cost, *, failed: int = 0) -> None:
    """Add to an account; the cost may be negative, to put a reservation right."""
    given = {
        "tenant": account.tenant,
        "day": account.day,
        "role": account.role,
        "stage": account.stage,
        "model": account.model,
        "calls": cost.calls,
        "failed": failed,
        "input_tokens": cost.input_tokens,
        "output_tokens": cost.output_tokens,
    }
    _more(connection.dialect.name).run(connection, given)


@lru_cache
def _more(dialect: str) -> Lean:
    """A row, or what is added to the one there is."""
    given: dict[str, Any] = {column.name: bindparam(column.name) for column in spending.columns}
    statement = insert_of(dialect, spending).values(given)
    sums = {name: _S[name] + statement.excluded[name] for name in _COUNTED}
    return Lean(statement.on_conflict_do_update(index_elements=list(spending.primary_key.columns), set_=sums))


def listed(connection: Connection, tenant: str, now: int, days: int) -> Sequence[Spent]:
    """The rows of the last `days` days, today included, newest first."""
    c = spending.c
    rows = connection.execute(
        select(spending)
        .where(c.tenant == tenant, c.day > now // DAY - days)
        .order_by(c.day.desc(), c.role, c.stage, c.model)
    )
    return [
        Spent(
            day=(_EPOCH + timedelta(days=row.day)).isoformat(),
            role=row.role,
            stage=row.stage,
            model=row.model,
            calls=row.calls,
            failed=row.failed,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
        )
        for row in rows
    ]
