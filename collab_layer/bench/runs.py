"""What a measurement printed with `--json`, read back and checked.

In:   files.
Out:  `Run`s.
Never: a file that only looks like a run; the first thing that is wrong with it is said in one sentence.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

from collab_layer.bench.files import checked, parsed, read


class Figure(BaseModel):
    """One row; `value` is None where it was not finite."""

    name: str = Field(min_length=1, max_length=500)
    value: float | None
    low: float | None = None
    high: float | None = None
    unit: str = Field(default="share", max_length=100)
    bar: str | None = None
    ok: bool | None = None


class Run(BaseModel):
    """The object that `collab bench … --json` prints."""

    command: str = Field(min_length=1, max_length=2_000)
    data_sha256: str = Field(max_length=200)
    seed: int
    embedder: str = Field(max_length=500)
    rows: list[Figure] = Field(min_length=1)


def load_run(path: Path) -> Run:
    """One run.

    Raises:
        DataSetError: It cannot be read, is no JSON, or no run.
    """
    return checked(path.name, parsed(path.name, read(path)), Run)


__all__ = ["Figure", "Run", "load_run"]
