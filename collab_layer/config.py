"""Settings, read once by the composition root; importing the package reads nothing.

Each can come from the environment with the prefix `COLLAB_`, for example `COLLAB_THREADS`.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, SecretStr, model_validator
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


class ServeSettings(BaseModel):
    """Limits of `collab serve`, each for one process.

    Attributes:
        rate: Requests of one token, as `600/minute` or `10/second`; `limits` reads it.
        rate_store: Where they are counted: `memory://`, or a store that several processes
            share, such as `redis://…`.
        max_body_bytes: The longest request body.
        max_requests: At once; more are told to come back in a second.
        body_timeout_s: Until the whole body has come.
        timeout_s: For one request in all.
        stop_timeout_s: What requests in hand are given when the service is told to stop.
        allowed_hosts: Names under which MCP clients may reach it, beside those of this
            machine; with a port, or without one for every port.
    """

    rate: str = "600/minute"
    rate_store: str = "memory://"
    max_body_bytes: int = Field(default=1 << 20, ge=1 << 10, le=1 << 26)
    max_requests: int = Field(default=64, ge=1, le=10_000)
    body_timeout_s: float = Field(default=10.0, gt=0, le=600)
    timeout_s: float = Field(default=60.0, gt=0, le=600)
    stop_timeout_s: int = Field(default=30, ge=1, le=600)
    allowed_hosts: tuple[str, ...] = ()


def _hour(value: object) -> object:
    return None if isinstance(value, str) and value.strip().lower() in ("", "never", "none") else value


Trigger = Literal["eager", "recurrence", "nightly"]
"""When the memory model is asked: with every batch, when something recurs, or never by the worker."""


class Settings(BaseSettings):
    """What a deployment may change.

    Attributes:
        rules: Name of a curation preset, or the path of a JSON rule file.
        embedder: Texts to vectors, by name: `hashing`, `onnx:DIR`, or a plugin's. None takes the first
            store's own, else `hashing`.
        threads: Threads for database and numeric work, 1 to 64.
        durable: Also survive a power loss: every commit waits for the disk (SQLite).
        worker: Run an embedded worker; switch it off where `collab worker` runs.
        disabled_plugins: Plugins not to load, by entry-point name.
        memory: The model that writes rules, facets and updates: `COLLAB_MEMORY_MODEL`, `COLLAB_MEMORY_API_KEY`, …
        reasoning: The model that ranks and answers: `COLLAB_REASONING_MODEL`, …
        trigger: When the worker asks the memory model about new interactions.
        recurrence_count: Records of one matter, no model having read them, from which on the trigger
            `recurrence` asks about them; the new one included, 2 to 100.
        ranking: How the reasoning model is asked: all candidates at once, or one at a time.
        consolidate_hour_utc: The hour after which an idle worker tidies each tenant once a day; `never` or
            None leaves it to `collab consolidate`.
        lease_s: How long a worker holds what it took on; if it dies, another takes that over then. Longer than
            one question to a model may take.
        watch_every_s: How often a worker asks a store with a feed what changed there past us, in seconds; 0 never.
        sweep_every_s: How often it compares a store without one, record by record, in seconds; 0 never.
        issuers: Public keys of organisations whose bundles are taken, and how far each is trusted, in
            (0, 0.9], as JSON.
        key_file: The key that receipts of erasures are signed with; made on first use. None: beside the
            SQLite file, as `collab.db.receipt-key`; for PostgreSQL in the user's configuration folder.
        injection_days: How long it is kept which items went into which answer, in days; 0 keeps nothing.
        holdout: Share of an owner's requests for a ranking that own memory serves alone, drawn by lot, so
            that `lift` can say what neighbours change; 0 holds nothing out. Only while the gate is open.
        ranking_days: How long it is kept what was ranked for whom, in days; 0 keeps nothing, and then
            there is no holdout and nothing is muted.
        choice_days: How long after a ranking a choice is still owed to it, in days.
        serve: Limits of `collab serve`: `COLLAB_SERVE_RATE`, `COLLAB_SERVE_MAX_BODY_BYTES`, …
    """

    # `COLLAB_MEMORY_MODEL` is `memory.model`: split at the first underscore only.
    model_config = SettingsConfigDict(
        env_prefix="COLLAB_", extra="ignore", env_nested_delimiter="_", env_nested_max_split=1
    )

    rules: str = "overlap"
    embedder: str | None = None
    threads: int = Field(default=4, ge=1, le=64)
    durable: bool = False
    worker: bool = True
    disabled_plugins: tuple[str, ...] = ()
    memory: RoleSettings = RoleSettings()
    reasoning: RoleSettings = RoleSettings()
    trigger: Trigger = "recurrence"
    recurrence_count: int = Field(default=4, ge=2, le=100)
    ranking: Literal["listwise", "pointwise"] = "listwise"
    consolidate_hour_utc: Annotated[int | None, BeforeValidator(_hour)] = Field(default=3, ge=0, le=23)
    lease_s: float = Field(default=60.0, ge=0.1, le=600)
    watch_every_s: float = Field(default=60.0, ge=0, le=86_400)
    sweep_every_s: float = Field(default=3_600.0, ge=0, le=2_592_000)
    key_file: Path | None = None
    issuers: dict[str, Annotated[float, Field(gt=0, le=0.9)]] = {}
    injection_days: int = Field(default=90, ge=0, le=3_650)
    holdout: float = Field(default=0.05, ge=0, le=0.5)
    ranking_days: int = Field(default=90, ge=0, le=3_650)
    choice_days: float = Field(default=7.0, gt=0, le=365)
    serve: ServeSettings = ServeSettings()

    @model_validator(mode="after")
    def _outlasts_a_question(self) -> Self:
        asked = max((role.timeout_s for role in (self.memory, self.reasoning) if role.model), default=0.0)
        if self.lease_s <= asked:
            raise ValueError(f"`lease_s` is {self.lease_s:g}, a model may take {asked:g}; make it longer")
        return self

    def rule_file(self) -> Path | None:
        """The file that `rules` names, None if it is a preset."""
        return Path(self.rules) if self.rules.endswith(".json") else None

    def receipt_key(self, sqlite_file: str | None, url: str) -> Path:
        """Where the key lies that receipts are signed with.

        Args:
            sqlite_file: The database's file; None for PostgreSQL.
            url: The database's URL without its password; each database has a key of its own.
        """
        if self.key_file is not None:
            return self.key_file.expanduser()
        if sqlite_file is not None:
            return Path(f"{sqlite_file}.receipt-key")
        home = os.environ.get("XDG_CONFIG_HOME") or os.environ.get("APPDATA")
        folder = Path(home) if home else Path.home() / ".config"
        return folder / "collab-layer" / f"receipts-{hashlib.sha256(url.encode()).hexdigest()[:12]}.key"
