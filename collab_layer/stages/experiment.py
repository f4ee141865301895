"""Who is served without neighbours for comparison, and what a comparison says.

In:   a secret, an owner and what it asks; hits and cases of two arms.
Out:  in or out; a difference of two rates with its 95 % interval.
Pure: chance comes from the secret. Whoever does not know it cannot foresee an arm.
"""

from __future__ import annotations

import hashlib
from math import sqrt
from typing import NamedTuple

Z = 1.959963985
"""Two-sided 95 %."""
LEAST = 10
"""Choices of an owner without which nothing is decided of it."""
LEAST_TENANT = 20


class Difference(NamedTuple):
    """A difference of two rates with its 95 % interval, all in [-1, 1]."""

    value: float
    low: float
    high: float


def request(salt: str, owner: str, day: int, asked: str) -> int:
    """A number of 63 bits that stands for one owner's request on one day, uniform without the salt.

    Args:
        salt: The tenant's secret.
        owner: Who asks.
        day: Days since 1970, UTC.
        asked: What: candidates in any fixed order, and the instruction.
    """
    digest = hashlib.blake2b(f"{owner}\0{day}\0{asked}".encode(), digest_size=8, key=salt.encode()[:64]).digest()
    return int.from_bytes(digest) >> 1


def held_out(request: int, share: float) -> bool:
    """Whether a request is one of the share that own memory serves alone."""
    return request < share * 2.0**63


def wilson(hits: int, cases: int) -> tuple[float, float]:
    """Bounds of a rate; [0, 1] without cases.

    Source: Wilson, JASA 22, 1927.
    """
    if not cases:
        return 0.0, 1.0
    rate, z2 = hits / cases, Z * Z
    middle = (rate + z2 / (2 * cases)) / (1 + z2 / cases)
    wide = Z * sqrt(rate * (1 - rate) / cases + z2 / (4 * cases * cases)) / (1 + z2 / cases)
    return max(middle - wide, 0.0), min(middle + wide, 1.0)


def difference(hits: int, cases: int, base_hits: int, base_cases: int) -> Difference:
    """Rate minus base rate of two independent samples; the widest interval where one of them is empty.

    Source: Newcombe, Statistics in Medicine 17:873-890, 1998, method 10 (hybrid of two Wilson scores).
    """
    if not cases or not base_cases:
        return Difference(0.0, -1.0, 1.0)
    rate, base = hits / cases, base_hits / base_cases
    (low, high), (base_low, base_high) = wilson(hits, cases), wilson(base_hits, base_cases)
    change = rate - base
    return Difference(
        change,
        change - sqrt((rate - low) ** 2 + (base_high - base) ** 2),
        change + sqrt((high - rate) ** 2 + (base - base_low) ** 2),
    )


def paired(both: int, won: int, lost: int, neither: int) -> Difference:
    """Rate minus base rate where each case was looked at both ways; the widest interval without cases.

    Args:
        both: Cases that hit either way, >= 0.
        won: Cases that hit, and would not in the base.
        lost: Cases that would hit in the base only.
        neither: Cases that hit in none.

    Source:
        Newcombe, Statistics in Medicine 17:2635-2650, 1998, method 10: as `difference`, with the
        correlation phi of the two, taken smaller by n/2 where it is positive.
    """
    cases = both + won + lost + neither
    if not cases:
        return Difference(0.0, -1.0, 1.0)
    hits, base_hits = both + won, both + lost
    rate, base = hits / cases, base_hits / cases
    (low, high), (base_low, base_high) = wilson(hits, cases), wilson(base_hits, cases)
    product = float(hits) * (cases - hits) * base_hits * (cases - base_hits)
    across = float(both * neither - won * lost)
    phi = (max(across - cases / 2, 0.0) if across > 0 else across) / sqrt(product) if product else 0.0
    down, down_base = rate - low, base_high - base
    up, up_base = high - rate, base - base_low
    change = rate - base
    return Difference(
        change,
        change - sqrt(max(down**2 - 2 * phi * down * down_base + down_base**2, 0.0)),
        change + sqrt(max(up**2 - 2 * phi * up * up_base + up_base**2, 0.0)),
    )


__all__ = ["LEAST", "LEAST_TENANT", "Difference", "difference", "held_out", "paired", "request", "wilson"]
