"""A receipt holds exactly as it was signed, by whom it was signed, and whoever checks it needs no code of ours."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from collab_layer.errors import InputError, ReceiptError
from collab_layer.governance import attest
from collab_layer.receipts import verify_receipt
from collab_layer.types.erasure import ErasureReceipt

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PAGE = Path(__file__).parents[2] / "docs" / "receipts.md"
SALT = "00112233445566778899aabbccddeeff"


def receipt(**changes: Any) -> ErasureReceipt:
    parts: dict[str, Any] = {
        "id": "r1",
        "at": datetime(2026, 5, 1, 12, tzinfo=UTC),
        "completed": datetime(2026, 5, 1, 12, 0, 1, 5, tzinfo=UTC),
        "salt": SALT,
        "subject": attest.hashed(SALT, "user:алиса"),
        "removed": {"cards": 2, "derived": 1},
        "erased": attest.erased({"cards": ["c1", "c2"], "derived": ["d1"], "records": []}, SALT),
        "generation": 3,
    }
    return ErasureReceipt(**{**parts, **changes})


SIGNED = attest.sign(receipt(), KEY)
RAW: dict[str, Any] = json.loads(SIGNED.model_dump_json())


def test_a_signed_receipt_holds_and_says_what_it_said():
    assert verify_receipt(SIGNED.model_dump_json(), attest.public(KEY)) == SIGNED
    assert verify_receipt(SIGNED.model_dump_json(indent=3), attest.pem(KEY)) == SIGNED
    assert verify_receipt(json.dumps(dict(reversed(RAW.items()))).encode()) == SIGNED


CHANGED: dict[str, Any] = {
    "format": "collab-layer/erasure/2",
    "id": "r2",
    "action": "revoke",
    "revision": 2,
    "status": "pending",
    "at": "2026-05-01T12:00:01Z",
    "completed": None,
    "salt": SALT[::-1],
    "subject": attest.hashed(SALT, "user:bob"),
    "removed": {"cards": 2},
    "erased": {},
    "generation": 4,
    "stores": {"mem0": "erased"},
    "pending": 1,
    "key": attest.public(OTHER),
    "signature": base64.b64encode(bytes(64)).decode(),
}


@pytest.mark.parametrize("field", sorted(RAW))
def test_no_field_can_be_changed(field):
    assert CHANGED[field] != RAW[field]
    with pytest.raises(ReceiptError):
        verify_receipt(json.dumps({**RAW, field: CHANGED[field]}))


@pytest.mark.parametrize("field", sorted(RAW))
def test_no_field_can_be_left_out(field):
    with pytest.raises(ReceiptError):
        verify_receipt(json.dumps({name: value for name, value in RAW.items() if name != field}))


def test_nothing_can_be_added_at_any_depth():
    deep = {**RAW, "erased": {**RAW["erased"], "cards": {**RAW["erased"]["cards"], "note": 1}}}
    for changed in ({**RAW, "note": "x"}, deep):
        with pytest.raises(ReceiptError):
            verify_receipt(json.dumps(changed))


def test_a_field_that_stands_twice_is_refused_since_readers_could_differ():
    twice = json.dumps(RAW).replace('"generation": 3', '"generation": 99, "generation": 3')
    with pytest.raises(ReceiptError):
        verify_receipt(twice)


@given(st.integers(0, len(SIGNED.model_dump_json()) - 1))
def test_a_truncated_receipt_is_refused(length):
    with pytest.raises(ReceiptError):
        verify_receipt(SIGNED.model_dump_json()[:length])


@given(st.integers(0, len(SIGNED.model_dump_json()) - 1), st.integers(1, 255))
def test_no_single_byte_can_be_flipped_unnoticed(place, mask):
    text = bytearray(SIGNED.model_dump_json().encode())
    text[place] ^= mask
    try:
        found = verify_receipt(bytes(text), attest.public(KEY))
    except ReceiptError:
        return
    assert found == SIGNED, "only what JSON itself takes for the same may pass"


@pytest.mark.parametrize("text", [b"", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'"r1"', b"1e999"])
def test_anything_else_is_no_receipt(text):
    with pytest.raises(ReceiptError, match="no whole receipt"):
        verify_receipt(text)


def test_signing_again_with_another_key_is_seen_where_the_key_is_given():
    forged = attest.sign(receipt(subject=attest.hashed(SALT, "user:bob")), OTHER)
    assert verify_receipt(forged.model_dump_json()) == forged
    with pytest.raises(ReceiptError, match="another key"):
        verify_receipt(forged.model_dump_json(), attest.public(KEY))


def test_an_unsigned_receipt_is_refused():
    with pytest.raises(ReceiptError, match="not signed"):
        verify_receipt(receipt().model_dump_json())


@pytest.mark.parametrize(
    "key", ["", "nonsense", "QUJD", "-----BEGIN PUBLIC KEY-----\nQUJD\n-----END PUBLIC KEY-----\n"]
)
def test_what_is_no_key_is_bad_input(key):
    with pytest.raises(InputError, match="public key"):
        verify_receipt(SIGNED.model_dump_json(), key)


def test_few_ids_are_listed_and_many_are_one_digest_of_bounded_size():
    few, many = [f"d{n}" for n in range(attest.LISTED)], [f"d{n}" for n in range(100_000)]
    listed, digested = (
        attest.erased({"derived": few}, SALT)["derived"],
        attest.erased({"derived": many}, SALT)["derived"],
    )
    assert listed.hashes == tuple(sorted(attest.hashed(SALT, id_) for id_ in few))
    assert (digested.count, digested.hashes) == (100_000, ())
    lines = "".join(sorted(hashlib.sha256((SALT + id_).encode()).hexdigest() + "\n" for id_ in many))
    assert digested.digest == hashlib.sha256(lines.encode()).hexdigest()
    whole = receipt(
        erased=attest.erased(dict.fromkeys(("entities", "interactions", "cards", "derived", "records"), few), SALT)
    )
    assert len(whole.model_dump_json()) < 700_000


@pytest.mark.skipif(not (shutil.which("openssl") and shutil.which("jq")), reason="needs openssl and jq")
def test_standard_tools_verify_it_as_the_page_says(tmp_path):
    (tmp_path / "receipt.json").write_text(SIGNED.model_dump_json(indent=2), encoding="utf-8")
    (tmp_path / "key.pem").write_text(attest.pem(KEY), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    script = page.split("```sh\n# with standard tools\n", 1)[1].split("```", 1)[0]
    run = subprocess.run(["sh", "-ec", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "Verified Successfully" in run.stdout
    (tmp_path / "receipt.json").write_text(json.dumps({**RAW, "generation": 4}), encoding="utf-8")
    assert subprocess.run(["sh", "-ec", script], cwd=tmp_path, capture_output=True, check=False).returncode != 0
