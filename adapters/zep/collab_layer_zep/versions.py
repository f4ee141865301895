"""Zep v4 is needed: an SDK or an address of v3 is refused before anything is sent.

In:   a version; an address.
Out:  nothing, or a `ZepVersionError` that says what to use.
Pure: no SDK, no I/O.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from collab_layer_zep.refusals import ZepVersionError

END_OF_V3: Final = "2027-04-13"
"""From this day on Zep answers v3 no longer."""
ADDRESS: Final = "https://api.getzep.com/api/v4"
_V3_PATHS: Final = ("/api/v2", "/api/v3")


def check_sdk(version: str) -> None:
    """Refuse an SDK of Zep v3.

    Raises:
        ZepVersionError: It is one.
    """
    major = version.partition(".")[0]
    if major.isdigit() and int(major) < 4:
        why = f"zep-cloud {version} speaks the v3 API, which ends on {END_OF_V3}; pip install 'zep-cloud>=4,<5'"
        raise ZepVersionError("zep", why)


def check_address(store: str, address: str) -> None:
    """Refuse the address of the v3 API.

    Raises:
        ZepVersionError: It is one.
    """
    path = urlsplit(address).path.rstrip("/")
    if path.endswith(_V3_PATHS):
        raise ZepVersionError(store, f"`{address}` is the v3 API, which ends on {END_OF_V3}; use {ADDRESS}")


__all__ = ["ADDRESS", "END_OF_V3", "check_address", "check_sdk"]
