"""Who does not serve pays nothing for it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SERVING = {"fastapi", "starlette", "uvicorn", "mcp", "mcp_types", "limits", "httpx", "httpx2"}
HELP = """
import contextlib, io
from collab_layer.surface.cli.main import main
with contextlib.redirect_stdout(io.StringIO()):
    assert main({arguments}) == 0
"""


def modules_after(code: str) -> set[str]:
    program = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    [
        "import collab_layer",
        "import collab_layer.layer, collab_layer.sync, collab_layer.config",
        HELP.format(arguments=["--help"]),
        HELP.format(arguments=["serve", "--help"]),
        HELP.format(arguments=["token", "--help"]),
    ],
    ids=["package", "layer", "help", "help of serve", "help of token"],
)
def test_nothing_of_a_server_is_imported_before_one_is_started(code: str) -> None:
    assert not modules_after(code) & SERVING


def test_http_alone_does_not_import_mcp_and_stdio_alone_no_http_server() -> None:
    assert not modules_after("import collab_layer.surface.http.app, collab_layer.surface.http.server") & {"mcp"}
    assert not modules_after("import collab_layer.surface.mcp.stdio") & {"fastapi", "limits"}
