"""An erasure that breaks off at any statement has done nothing, and is complete when it is asked again."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import event

from collab_layer import CollabLayer, Sharing
from collab_layer.config import Settings
from collab_layer.receipts import verify_receipt

SECRET = "zanzibarpassphrase"


class Crash(BaseException):
    """As if the process had ended here."""


def residue(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if SECRET.encode() in path.read_bytes().lower()]


def broken_off(layer, at, call):
    """Run a call that ends at its statement with that number; whether it came so far."""
    engine, seen = layer._layer._core.tools.store.database.engine, [0]

    def count(*_):
        seen[0] += 1
        if seen[0] == at:
            raise Crash

    event.listen(engine, "before_cursor_execute", count)
    try:
        call()
    except Crash:
        return True
    finally:
        event.remove(engine, "before_cursor_execute", count)
    return False


@pytest.mark.parametrize("verb", ["forget", "forget_influence"])
def test_an_erasure_broken_off_anywhere_is_whole_when_asked_again(sqlite_url, tmp_path, verb):
    sharing = Sharing.within_tenant("records")
    with CollabLayer.open(sqlite_url, sharing=sharing, settings=Settings(worker=False)) as layer:
        layer.observe("user:ann", "item:dune", text=f"My {SECRET} is the name of a worm")
        layer.observe("user:bob", "item:dune", text="Worms are long")
        layer.drain()
        layer.context("user:bob", SECRET)
        for at in (2, 5, 9, 14, 20, 27, 35):
            if not broken_off(layer, at, lambda: getattr(layer, verb)("user:ann")):
                break
            assert SECRET in str(layer.context("user:bob", f"{SECRET} {at}")), "nothing had been done"
        else:
            receipt = getattr(layer, verb)("user:ann")
            assert verify_receipt(receipt.model_dump_json(), layer.receipt_key()) == receipt
        layer.drain()
        assert SECRET not in str(layer.context("user:bob", SECRET))
        if verb == "forget":
            assert residue(tmp_path) == []
