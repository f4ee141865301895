"""What each tenant spent on language models: reserved before a call, put right after it.

A reservation is an overestimate that stays if the process dies before it is settled, so a
cap is never overrun by a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import Connection, func, select, update

from collab_layer.graph.engine import upsert
from collab_layer.graph.tables import spending
from collab_layer.types.asking import Role, Spent
from collab_layer.types.time import DAY

_EPOCH = date(1970, 1, 1)


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


def spent(connection: Connection, account: Account) -> tuple[int, int]:
    """Calls and tokens of the role on that day, all stages and models."""
    c = spending.c
    row = connection.execute(
        select(func.sum(c.calls), func.sum(c.input_tokens + c.output_tokens)).where(
            c.tenant == account.tenant, c.day == account.day, c.role == account.role
        )
    ).one()
    return int(row[0] or 0), int(row[1] or 0)


def add(connection: Connection, account: Account, *, calls: int, failed: int, tokens: tuple[int, int]) -> None:
    """Add to an account; the numbers may be negative, to put a reservation right."""
    key = {
        "tenant": account.tenant,
        "day": account.day,
        "role": account.role,
        "stage": account.stage,
        "model": account.model,
    }
    upsert(connection, spending, [{**key, "calls": 0, "failed": 0, "input_tokens": 0, "output_tokens": 0}])
    c = spending.c
    connection.execute(
        update(spending)
        .where(*(c[name] == value for name, value in key.items()))
        .values(
            calls=c.calls + calls,
            failed=c.failed + failed,
            input_tokens=c.input_tokens + tokens[0],
            output_tokens=c.output_tokens + tokens[1],
        )
    )


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
