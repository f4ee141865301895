"""The key that receipts are signed with: one file of a deployment, never in its database.

In:   the path of a file.
Out:  an Ed25519 key; made on first use, readable by its owner alone. Processes that make it at
      the same time end up with the same one.
"""

from __future__ import annotations

import os
import secrets
import threading
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from collab_layer.errors import KeyFileError


class KeyFile:
    """Read when it is first needed, then kept in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.missed: str | None = None
        """Why it could not be used last, None if it could."""
        self._key: Ed25519PrivateKey | None = None
        self._lock = threading.Lock()

    def key(self) -> Ed25519PrivateKey:
        """The key.

        Raises:
            KeyFileError: The file cannot be read or made, or holds something else.
        """
        with self._lock:
            if self._key is None:
                self._key = self._load() or self._make()
            self.missed = None
            return self._key

    def _load(self) -> Ed25519PrivateKey | None:
        try:
            held = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeyFileError(str(self.path), f"it cannot be read: {error.strerror}") from error
        try:
            found = serialization.load_pem_private_key(held, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise KeyFileError(str(self.path), "it holds no key in PEM without a password") from error
        if not isinstance(found, Ed25519PrivateKey):
            raise KeyFileError(str(self.path), "its key is not of Ed25519")
        return found

    def _make(self) -> Ed25519PrivateKey:
        key = Ed25519PrivateKey.generate()
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(key.private_bytes(*form))
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(draft, self.path)  # whole or not at all, and never over another one
            except FileExistsError:
                key = self._load() or key
            finally:
                draft.unlink()
        except OSError as error:
            raise KeyFileError(str(self.path), f"it cannot be made: {error.strerror}") from error
        return key
