"""Operations of the erasure run, in a process that may be killed at any moment.

In:   operations as dicts, one at a time.
Out:  an answer to each: an id, a receipt as JSON, or None where what it names is gone by now.
"""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from collab_layer.bench.residue_stores import Kept, Kind, opened
from collab_layer.config import Settings
from collab_layer.errors import ReceiptError, UnknownIdError
from collab_layer.receipts import verify_receipt
from collab_layer.sync import CollabLayer
from collab_layer.types.entity import MemoryRef

READY = "works"
STORED = "store:"
"""Before the native id of a memory that lies in the store."""
Op = dict[str, Any]


def work(folder: Path, kind: Kind, asked: Connection, kept: Connection) -> None:
    """Open the layer of a folder, say so, and answer operations until told to stop."""
    store = opened(kind, folder, kept)
    with CollabLayer.open(str(folder / "collab.db"), settings=Settings(worker=False)) as layer:
        if store is not None:
            layer.attach(store.backend, deliver=True)
        asked.send(READY)
        while (op := asked.recv()) is not None:
            asked.send(perform(layer, store, op))
    if store is not None:
        store.close()
    asked.send(READY)


def perform(layer: CollabLayer, store: Kept | None, op: Op) -> Any:
    """One operation."""
    try:
        return _VERBS[op["verb"]](layer, store, op)
    except UnknownIdError:
        return None


def _observe(layer: CollabLayer, store: Kept | None, op: Op) -> str:
    return layer.observe(op["owner"], op["target"], verb="liked", text=op["text"], key=op["key"])[0]


def _remember(layer: CollabLayer, store: Kept | None, op: Op) -> str:
    """The owner keeps it in its store, once; the layer reads it there."""
    if store is None:
        return _observe(layer, store, op)
    known = store.find(op["owner"], op["word"]) if op.get("again") else None
    native = known or store.add(op["owner"], op["text"])
    layer.reconcile(store.backend)
    return STORED + native


def _publish(layer: CollabLayer, store: Kept | None, op: Op) -> str:
    return layer.publish(op["owner"], op["text"], op["to"]).id


def _grant(layer: CollabLayer, store: Kept | None, op: Op) -> str:
    return layer.grant(op["owner"], op["to"], "records").id


def _context(layer: CollabLayer, store: Kept | None, op: Op) -> str:
    layer.context(op["owner"], op["about"])
    return ""


def _drain(layer: CollabLayer, store: Kept | None, op: Op) -> str:
    layer.drain()
    return ""


def _forget(layer: CollabLayer, store: Kept | None, op: Op) -> str:
    what = op["what"]
    if store is not None and what.startswith(STORED):
        what = MemoryRef(backend=store.backend.name, id=what.removeprefix(STORED))
    return layer.forget(what, source=store is not None).model_dump_json()


def _forget_influence(layer: CollabLayer, store: Kept | None, op: Op) -> str:
    return layer.forget_influence(op["what"], block=False).model_dump_json()


def _revoke(layer: CollabLayer, store: Kept | None, op: Op) -> str:
    return layer.revoke(op["what"]).model_dump_json()


def _left(layer: CollabLayer, store: Kept | None, op: Op) -> str:
    return "" if store is None else store.words()


def _unproved(layer: CollabLayer, store: Kept | None, op: Op) -> int:
    """How many of the receipts are not complete, or do not hold."""
    key, bad = layer.receipt_key(), 0
    for id_ in op["receipts"]:
        receipt = layer.receipt(id_)
        try:
            verify_receipt(receipt.model_dump_json(), key)
        except ReceiptError:
            bad += 1
        bad += receipt.status != "complete"
    return bad


_VERBS = {
    "observe": _observe,
    "remember": _remember,
    "publish": _publish,
    "grant": _grant,
    "context": _context,
    "drain": _drain,
    "forget": _forget,
    "forget_influence": _forget_influence,
    "revoke": _revoke,
    "left": _left,
    "unproved": _unproved,
}

__all__ = ["READY", "STORED", "Op", "perform", "work"]
