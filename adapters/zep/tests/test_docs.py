"""The README, the example and the live run, over the contract server instead of Zep Cloud."""

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from collab_layer_zep import Fact, ZepBackend

from collab_layer import Entity

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
README = HERE.parent / "README.md"


def run(command, folder, **environment):
    env = {**os.environ, "COLLAB_WORKER": "false", **environment}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def project(server):
    return {"ZEP_API_KEY": server.api_key, "ZEP_BASE_URL": server.url}


def test_the_readme_runs(server, zep, project, tmp_path):
    user = zep.user.create(user_id="ann")
    thread = zep.thread.create(user_uuid=user.uuid_).uuid_
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    program = "\n".join(blocks).replace("Zep()", f"Zep(base_url={server.url!r})")
    printed = run([sys.executable, "-c", f"{program}\nprint(prompt({thread!r}))\nlayer.close()"], tmp_path, **project)
    assert "<FACTS>" in printed


def test_the_example_runs_and_leaves_nothing(server, project, tmp_path):
    printed = run([sys.executable, str(ROOT / "examples" / "zep_support_desk.py")], tmp_path, **project)
    assert "delete the cookie of the old domain" in printed
    assert set(server.state.census().values()) == {0}


def test_without_a_key_the_example_says_what_it_needs(tmp_path):
    env = {"ZEP_API_KEY": ""}
    assert "ZEP_API_KEY" in run([sys.executable, str(ROOT / "examples" / "zep_support_desk.py")], tmp_path, **env)


@pytest.mark.timeout(300)
def test_the_live_run_passes_here_too_and_cleans_up_after_itself(server, project, tmp_path):
    call = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", str(HERE / "test_live.py")]
    printed = run(call, ROOT, COLLAB_LIVE="1", **project)
    assert "3 passed" in printed
    assert set(server.state.census().values()) == {0}


def test_the_command_line_brings_a_project_in(server, zep, project, tmp_path):
    zep.user.create(user_id="ann")
    store = ZepBackend(zep, ledger=tmp_path / "zep.db")
    asyncio.run(store.remember(Entity("user", "ann"), [Fact(text="Заказы лежат в SQLite")]))
    collab = [str(Path(sys.executable).parent / "collab")]
    answer = json.loads(
        run([*collab, "index", "zep", "--set", f"base_url={server.url}", "--json"], tmp_path, **project)
    )
    assert answer == {"backend": "zep", "records": 1}
