"""Which layer a command talks to, and as whom.

In:   the global options of `collab`.
Out:  an open `CollabLayer`, closed again when the command ends.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

    from collab_layer import CollabLayer
    from collab_layer.config import Settings


@dataclass(frozen=True, slots=True)
class Session:
    """The global options.

    Attributes:
        url: A file, or a database URL.
        tenant: Nothing crosses it.
        principal: Who is asking; the operator of the database if `None`.
        purpose: Compared with the purpose of a grant.
    """

    url: str
    tenant: str
    principal: str | None
    purpose: str | None

    @contextmanager
    def layer(self) -> Generator[CollabLayer]:
        """Open the layer for one command; what is left to do in the background is left to a worker."""
        from collab_layer.sync import CollabLayer  # the database and numpy load only for commands that need them

        with CollabLayer.open(self.url, tenant=self.tenant, settings=self.settings()) as layer:
            if self.principal is None:
                yield layer
            else:
                yield layer.as_(self.principal, purpose=self.purpose)

    @property
    def is_shared(self) -> bool:
        """Whether other machines can reach the database."""
        return "://" in self.url and not self.url.startswith("sqlite")

    def settings(self) -> Settings:
        """As in the environment, without the embedded worker: a command ends too soon for it."""
        from collab_layer.config import Settings

        return Settings(worker=False)


def session_of(context: typer.Context) -> Session:
    """The global options that were given before the command."""
    return context.ensure_object(Session)
