"""What importing costs, counted in modules and not in seconds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"numpy", "sqlalchemy", "alembic", "typer", "rich", "pydantic", "cryptography", "Stemmer", "mem0"}
LAYER_MODULES, HELP_MODULES = 940, 315
"""A quarter above what it takes: 751 and 251 on Python 3.11."""
HEAVY |= {"pydantic_ai", "openai", "anthropic", "httpx"}


def modules_after(code: str) -> set[str]:
    program = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_imports_nothing_heavy() -> None:
    added = modules_after("import collab_layer") - modules_after("")
    assert not added & HEAVY
    assert {name for name in added if name.startswith("collab_layer")} == {"collab_layer"}
    assert len(added) < 20


def test_opening_the_layer_class_imports_no_framework_and_no_model_client() -> None:
    added = modules_after("from collab_layer import CollabLayer") - modules_after("")
    clients = {"mem0", "pydantic_ai", "openai", "anthropic", "httpx", "fastapi", "uvicorn", "mcp", "scipy", "ray"}
    assert not added & {*clients, "matplotlib", "pandas", "numba", "torch", "typer", "rich"}
    assert len(added) < LAYER_MODULES


def test_help_needs_no_database_no_arrays_and_no_models() -> None:
    program = (
        "import contextlib, io\n"
        "from collab_layer.surface.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    assert main(['--help']) == 0\n"
    )
    assert not modules_after(program) & {
        "sqlalchemy",
        "alembic",
        "cryptography",
        "mem0",
        "numpy",
        "rich.console",
        "pydantic_ai",
        "openai",
        "httpx",
        "matplotlib",
        "pydantic",
    }


def test_help_imports_no_more_than_it_did() -> None:
    program = (
        "import contextlib, io\n"
        "from collab_layer.surface.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    main(['--help'])\n"
    )
    assert len(modules_after(program) - modules_after("")) < HELP_MODULES


def test_every_public_name_is_there_and_listed() -> None:
    import collab_layer

    for name in collab_layer.__all__:
        assert getattr(collab_layer, name) is not None
    assert set(collab_layer.__all__) <= set(dir(collab_layer))
    assert set(collab_layer.__all__) == {*collab_layer._HOME, "errors"}


def test_an_unknown_name_is_refused_like_by_any_module() -> None:
    import collab_layer

    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        collab_layer.Nothing  # noqa: B018  the look-up is the test
