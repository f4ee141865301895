"""Settings, read once by the composition root; importing the package reads nothing.

Each can come from the environment with the prefix `COLLAB_`, for example `COLLAB_THREADS`.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What a deployment may change.

    Attributes:
        rules: Name of a curation preset, or the path of a JSON rule file.
        threads: Threads for database and numeric work, 1 to 64.
        durable: Also survive a power loss: every commit waits for the disk (SQLite).
        worker: Run an embedded worker; switch it off where `collab worker` runs.
        disabled_plugins: Plugins not to load, by entry-point name.
    """

    model_config = SettingsConfigDict(env_prefix="COLLAB_", extra="ignore")

    rules: str = "overlap"
    threads: int = Field(default=4, ge=1, le=64)
    durable: bool = False
    worker: bool = True
    disabled_plugins: tuple[str, ...] = ()

    def rule_file(self) -> Path | None:
        """The file that `rules` names, None if it is a preset."""
        return Path(self.rules) if self.rules.endswith(".json") else None
