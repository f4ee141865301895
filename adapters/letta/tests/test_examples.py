"""The examples over the real server; `tests/docs` runs them in memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.letta
@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("letta_*.py")))
def test_the_example_runs_on_a_real_server(server, real, example):
    environment = {
        **os.environ,
        "LETTA_BASE_URL": server.status()["base_url"],
        "LETTA_MODEL": "openai-proxy/gpt-4o-mini",
    }
    call = [sys.executable, str(EXAMPLES / example)]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "genproto@latest" in done.stdout
    assert real.left() == []
