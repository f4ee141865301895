"""What Mem0 and its vector store keep of a memory beside the memory itself, removed.

In:   a self-hosted Mem0 object, ids of memories, the scopes they were in, or whose words are meant.
Out:  Mem0's history rows, its last messages, and the bytes in files of an embedded vector store are gone.
      PostgreSQL frees the bytes of deleted rows by itself, when it vacuums.
Of the newest history row only id, event and time stay: a feed that stood there goes on from it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from collab_layer_mem0.hnsw import blank_unused

Said = Callable[[str, str | None, str | None], bool]
"""Whether a message is somebody's, by its scope, its role and the speaker's name."""
_SCOPE = ("agent_id", "run_id", "user_id")
_BUSY_S = 5.0
_QUEUED = """
DELETE FROM embeddings_queue WHERE operation <> 3 AND EXISTS (
    SELECT 1 FROM embeddings_queue AS gone WHERE gone.topic = embeddings_queue.topic
    AND gone.id = embeddings_queue.id AND gone.operation = 3 AND gone.seq_id > embeddings_queue.seq_id)
"""
"""Operations (3 is a deletion) on what was deleted later."""


def scrub_history(db: Any, ids: Sequence[str]) -> None:
    """Remove what the history says of these memories; the row that tells of a deletion keeps no words."""
    with db._lock:
        connection: sqlite3.Connection = db.connection
        connection.execute("PRAGMA secure_delete=ON")
        with connection:
            for one in ids:
                last = "SELECT max(rowid) FROM history WHERE memory_id = ?1"
                connection.execute(f"DELETE FROM history WHERE memory_id = ?1 AND rowid < ({last})", (one,))
                blank = "old_memory = NULL, new_memory = NULL, actor_id = NULL, role = NULL"
                connection.execute(f"UPDATE history SET {blank} WHERE memory_id = ?1", (one,))


def write_history_anew(db: Any) -> None:
    """Leave no copy of deleted rows in the unused parts of the history's file."""
    with db._lock:
        db.connection.execute("VACUUM")


def scrub_messages(db: Any, payloads: Sequence[Mapping[str, Any]]) -> None:
    """Remove the last messages kept for these memories' scopes: which of them told of it is not known."""
    scopes = {tuple((key, str(payload[key])) for key in _SCOPE if payload.get(key)) for payload in payloads}
    with db._lock:
        connection: sqlite3.Connection = db.connection
        connection.execute("PRAGMA secure_delete=ON")
        with connection:
            for scope in scopes:
                wanted = "&".join(f"{key}={_escaped(value)}" for key, value in scope)
                connection.execute("DELETE FROM messages WHERE session_scope = ?", (wanted,))


def scrub_said(db: Any, said: Said) -> list[str]:
    """Remove the messages that somebody said; the memories of which the history says that they were its words."""
    with db._lock:
        connection: sqlite3.Connection = db.connection
        connection.execute("PRAGMA secure_delete=ON")
        with connection:
            kept = connection.execute("SELECT id, session_scope, role, name FROM messages").fetchall()
            gone = [(id_,) for id_, scope, role, name in kept if said(str(scope or ""), role, name)]
            connection.executemany("DELETE FROM messages WHERE id = ?", gone)
            told = "SELECT DISTINCT memory_id, role, actor_id FROM history WHERE actor_id IS NOT NULL"
            rows = connection.execute(told).fetchall()
    return [str(id_) for id_, role, actor in rows if said("", role, actor)]


def scrub_chroma(folder: Path, ids: Sequence[str]) -> None:
    """Remove the words from Chroma's queue of operations, from its pages and from what its index never wrote.

    The queue keeps the deletions, so that an index that is built from it lacks the memories too.
    """
    for file in folder.glob("chroma.sqlite3"):
        _write_anew(file, _QUEUED)
        blank_unused(folder)


def scrub_qdrant(folder: Path, ids: Sequence[str]) -> None:
    """Remove deleted points of every collection from the pages of an embedded Qdrant."""
    for file in folder.glob("collection/*/storage.sqlite"):
        _write_anew(file)


def scrub_faiss(folder: Path, ids: Sequence[str]) -> None:
    """Remove the pickled copy of a store that Mem0 has since rewritten as JSON.

    Raises:
        OSError: A file still names a memory: Mem0 could not write it, and said so only in its log.
    """
    for file in folder.glob("*.faiss"):
        kept = file.with_suffix(".json")
        if kept.exists():
            file.with_suffix(".pkl").unlink(missing_ok=True)
            said = kept.read_bytes()
            if any(one.encode() in said for one in ids if one):
                raise OSError(f"`{kept.name}` was not written anew")


SCRUBS: Mapping[str, Callable[[Path, Sequence[str]], None]] = {
    "chroma": scrub_chroma,
    "faiss": scrub_faiss,
    "qdrant": scrub_qdrant,
}
"""Vector stores that lie in files of ours, and how these are cleared of what was deleted."""


def _write_anew(file: Path, *first: str) -> None:
    connection = sqlite3.connect(file, timeout=_BUSY_S, isolation_level=None)
    try:
        for statement in ("PRAGMA secure_delete=ON", *first, "VACUUM"):
            connection.execute(statement)
    finally:
        connection.close()


def _escaped(value: str) -> str:
    """As Mem0 writes a value into a scope."""
    return value.replace("%", "%25").replace("&", "%26").replace("=", "%3D")


__all__ = ["SCRUBS", "Said", "scrub_history", "scrub_messages", "scrub_said", "write_history_anew"]
