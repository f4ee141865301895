"""What every room of the layer is built on: the opened parts, who acts, and checks of what callers pass.

In:   the parts of one opened layer, and the scope of a view.
Out:  the same, after asking whether it is still open and whether the operator asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from collab_layer.config import Settings
from collab_layer.errors import InputError, LayerClosedError, NotPermittedError, UnknownIdError
from collab_layer.flows import work
from collab_layer.flows.cache import Cache
from collab_layer.flows.tools import Tools
from collab_layer.plugins.manager import Plugins
from collab_layer.types.entity import Entity, checked_text
from collab_layer.types.interaction import Interaction
from collab_layer.types.scope import Policy, Scope

V = TypeVar("V", Interaction, Policy)
EntityLike = Entity | str
RulesLike = str | Mapping[str, Any]


class Core:
    """What every view of one opened layer shares."""

    def __init__(self, tools: Tools, plugins: Plugins, settings: Settings, *, own_embedder: bool) -> None:
        self.tools, self.plugins, self.settings = tools, plugins, settings
        self.own_embedder = own_embedder
        self.cache = Cache()
        self.closing: asyncio.Future[None] | None = None
        self.wake = asyncio.Event()
        self.worker: asyncio.Task[None] | None = None

    @property
    def closed(self) -> bool:
        """Whether it is closed, or about to be."""
        return self.closing is not None

    def nudge(self) -> None:
        """Wake who works in this process; start the embedded worker if there is to be one."""
        self.wake.set()
        if not self.settings.worker or self.closed:
            return
        if self.worker is None or self.worker.done():
            self.worker = asyncio.get_running_loop().create_task(work.run(self.tools, None, self.wake))


class View:
    """One view of an opened layer: a tenant, and perhaps whom it acts for."""

    def __init__(self, core: Core, scope: Scope) -> None:
        self._core, self._scope = core, scope

    @property
    def tenant(self) -> str:
        """The tenant of this view."""
        return self._scope.tenant

    @property
    def principal(self) -> Entity | None:
        """Whom this view acts for; None for the operator."""
        return self._scope.principal

    @property
    def embedder(self) -> str:
        """Id of what turns texts into vectors; vectors of another are never compared with its own."""
        return self._core.tools.embedder.id

    @property
    def plugins(self) -> Plugins:
        """What was found at opening, failures included."""
        return self._core.plugins

    def _alive(self) -> Tools:
        if self._core.closed:
            raise LayerClosedError
        return self._core.tools

    def _operator(self, action: str) -> Tools:
        """What concerns everybody is not for one principal to do."""
        tools = self._alive()
        if self._scope.principal is not None:
            raise NotPermittedError(str(self._scope.principal), action, self.tenant)
        return tools


def known_id(text: str) -> str:
    """An id as it may be looked for; what no database could hold is as unknown as any other."""
    try:
        return checked_text(str(text))
    except InputError as error:
        raise UnknownIdError(str(text)) from error


def checked(kind: type[V], **parts: Any) -> V:
    """A value made of what a caller passed.

    Raises:
        InputError: A part cannot be used; it is named.
    """
    try:
        return kind(**parts)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"`{where}`: {first['msg']}") from error
