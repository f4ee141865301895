"""The programs in the README run, and the store can be brought in from the command line."""

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from collab_layer_graphiti import Fact

from collab_layer.types.entity import Entity

README = Path(__file__).parents[1] / "README.md"
QUIET = {**os.environ, "GRAPHITI_TELEMETRY_ENABLED": "false", "COLLAB_WORKER": "false", "OPENAI_API_KEY": "unused"}


def run(command, folder):
    done = subprocess.run(command, cwd=folder, env=QUIET, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_runs(falkor, graph, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    program = "\n".join(blocks).replace("6379", str(falkor.port)).replace('"acme"', repr(graph))
    end = (
        "asyncio.run(store.aclose())\nlayer.close()\n"
        "async def use():\n    await (await own()).close()\n"
        "asyncio.run(use())\n"
    )
    now, march = run([sys.executable, "-W", "ignore", "-c", program + end], tmp_path).split("</memory-")
    assert "moved to SQLite" in now
    assert "nothing known" in march


def test_the_example_tells_a_neighbour_what_moved_and_what_held_before(tmp_path):
    example = Path(__file__).parents[3] / "examples" / "graphiti_moved_database.py"
    now, march = run([sys.executable, "-W", "ignore", str(example)], tmp_path).split("in March:")
    assert ("SQLite" in now, "PostgreSQL" in now) == (True, False)
    past, _, alone = march.partition("March:")
    assert ("SQLite" in past, "PostgreSQL" in past) == (False, True)
    assert "June: The orders service stores its data in SQLite" in alone


def test_the_command_line_brings_a_graph_in(falkor, graph, store, tmp_path):
    asyncio.run(store().remember(Entity("user", "ann"), [Fact(text="Заказы лежат в SQLite")]))
    settings = [word for one in (f"url={falkor.url}", f"graph={graph}") for word in ("--set", one)]
    collab = [str(Path(sys.executable).parent / "collab")]
    answer = json.loads(run([*collab, "index", "graphiti", *settings, "--json"], tmp_path))
    assert answer == {"backend": "graphiti", "records": 1}


def test_the_measurement_finds_no_wrong_row_of_ours_and_says_how_it_was_made(capsys):
    from collab_layer_graphiti import measure

    assert measure.main(["--facts", "40", "--times", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in said["rows"]}
    assert rows["graphiti.40.wrong_rows"]["ok"] is True
    assert rows["graphiti.40.search_words_as_of.p50"]["unit"] == "ms"
    assert (said["seed"], said["embedder"], len(said["data_sha256"])) == (7, "HashEmbedder/384", 64)
