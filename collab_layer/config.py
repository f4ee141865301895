"""Settings, read once by the composition root; importing the package reads nothing.

Each can come from the environment with the prefix `COLLAB_`, for example `COLLAB_THREADS`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class RoleSettings(BaseModel):
    """One of the two language models; without `model` the rules do its work.

    Attributes:
        model: Provider and model, such as `openai:gpt-4o-mini`, or a plugin's `client:model`.
        base_url: Of an OpenAI-compatible server.
        api_key: None takes the provider's own environment variable.
        timeout_s: For one question in all, retries included; less than a worker's lease of 60.
        retries: Further requests after an unusable reply, 0 to 5.
        calls_per_day: The most requests a tenant may make in a day (UTC); no cap if None.
        tokens_per_day: The most tokens, in and out.
    """

    model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    timeout_s: float = Field(default=30.0, gt=0, le=50)
    retries: int = Field(default=2, ge=0, le=5)
    calls_per_day: int | None = Field(default=None, ge=0)
    tokens_per_day: int | None = Field(default=None, ge=0)


Trigger = Literal["eager", "recurrence", "nightly"]
"""When the memory model is asked: with every batch, when something recurs, or never by the worker."""


class Settings(BaseSettings):
    """What a deployment may change.

    Attributes:
        rules: Name of a curation preset, or the path of a JSON rule file.
        threads: Threads for database and numeric work, 1 to 64.
        durable: Also survive a power loss: every commit waits for the disk (SQLite).
        worker: Run an embedded worker; switch it off where `collab worker` runs.
        disabled_plugins: Plugins not to load, by entry-point name.
        memory: The model that writes rules, facets and updates: `COLLAB_MEMORY_MODEL`, `COLLAB_MEMORY_API_KEY`, …
        reasoning: The model that ranks and answers: `COLLAB_REASONING_MODEL`, …
        trigger: When the worker asks the memory model about new interactions.
        ranking: How the reasoning model is asked: all candidates at once, or one at a time.
    """

    # `COLLAB_MEMORY_MODEL` is `memory.model`: split at the first underscore only.
    model_config = SettingsConfigDict(
        env_prefix="COLLAB_", extra="ignore", env_nested_delimiter="_", env_nested_max_split=1
    )

    rules: str = "overlap"
    threads: int = Field(default=4, ge=1, le=64)
    durable: bool = False
    worker: bool = True
    disabled_plugins: tuple[str, ...] = ()
    memory: RoleSettings = RoleSettings()
    reasoning: RoleSettings = RoleSettings()
    trigger: Trigger = "recurrence"
    ranking: Literal["listwise", "pointwise"] = "listwise"

    def rule_file(self) -> Path | None:
        """The file that `rules` names, None if it is a preset."""
        return Path(self.rules) if self.rules.endswith(".json") else None
