"""Find the installed plugins and collect what they describe.

In:   entry points of the group `collab_layer`, our own built-ins among them.
Out:  `Plugins`: descriptions by name, and for each plugin that was left out the reason.
      One plugin that fails never keeps another from loading.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from collab_layer.errors import InputError, PluginError
from collab_layer.plugins import hookspecs
from collab_layer.plugins.check import COMMANDS_HOOK, REGISTERS, Spec, UnfitError, check_spelling, descriptions
from collab_layer.plugins.specs import (
    BackendSpec,
    DomainSpec,
    EmbedderSpec,
    FeatureSpec,
    LinkerSpec,
    ModelSpec,
    RunnerSpec,
    ShareFilterSpec,
    SinkSpec,
)

if TYPE_CHECKING:
    import typer

    from collab_layer.ports.models import Embedder

T = TypeVar("T")
OURS = "collab-layer"
DEFAULT_EMBEDDER = "hashing"
BUILTIN = "builtin"
"""The name of our own plugin."""


@dataclass(frozen=True)
class Plugins:
    """What the installed plugins describe, by name, in the order they were loaded.

    Attributes:
        loaded: Names of the plugins that are in use.
        failures: Why the others were left out; each carries its plugin's name.
        origin: For each description, as `backend:mem0`, the plugin it came from.
    """

    backends: Mapping[str, BackendSpec]
    embedders: Mapping[str, EmbedderSpec]
    models: Mapping[str, ModelSpec]
    domains: Mapping[str, DomainSpec]
    linkers: Mapping[str, LinkerSpec]
    features: Mapping[str, FeatureSpec]
    share_filters: Mapping[str, ShareFilterSpec]
    sinks: Mapping[str, SinkSpec]
    runners: Mapping[str, RunnerSpec]
    loaded: tuple[str, ...] = ()
    failures: tuple[PluginError, ...] = ()
    origin: Mapping[str, str] = field(default_factory=dict[str, str])
    _callers: tuple[pluggy.PluginManager, ...] = field(default=(), repr=False)

    def embedder(self, named: str = DEFAULT_EMBEDDER) -> Embedder:
        """An embedder by name, opened: `hashing`, `onnx:DIR`.

        Raises:
            InputError: There is none of that name, or it takes something else.
            ModelSetupError: It cannot be opened.
        """
        name, _, given = named.partition(":")
        spec = self.embedders.get(name)
        if spec is None:
            raise InputError(f"no embedder {name!r}; there are {', '.join(self.embedders)}")
        if bool(given) != bool(spec.takes):
            raise InputError(f"write {f'{name}:{spec.takes}' if spec.takes else name!r}, not {named!r}")
        return spec.open(given) if given else spec.open()

    def add_commands(self, app: typer.Typer) -> tuple[PluginError, ...]:
        """Let each plugin add its sub-commands to `app`; why some could not."""
        failures: list[PluginError] = []
        for name, caller in zip(self.loaded, self._callers, strict=True):
            try:
                _guard(name, lambda caller=caller: caller.hook.collab_register_commands(app=app))
            except PluginError as error:
                failures.append(error)
        return tuple(failures)


def load(disabled: Collection[str] = ()) -> Plugins:
    """Load every installed plugin but the `disabled` ones, each on its own.

    Ours come first, then the others by name. Of two plugins that register the same name
    the later one is left out.
    """
    found = [point for point in _discover() if point.name not in disabled]
    missing = BUILTIN not in disabled and not any(_distribution(point) == OURS for point in found)
    reason = PluginError(BUILTIN, "collab-layer itself is not installed here; run `pip install collab-layer`")
    collected = _Collected(failures=[reason] if missing else [])
    for point in found:
        try:
            collected.add(point, _guard(point.name, point.load))
        except PluginError as error:
            collected.failures.append(error)
    return collected.finish()


class _Collected:
    """Descriptions gathered so far."""

    def __init__(self, failures: list[PluginError]) -> None:
        self.failures = failures
        self.tables: dict[str, dict[str, Any]] = {hook: {} for hook in REGISTERS}
        self.origin: dict[str, str] = {}
        self.callers: dict[str, pluggy.PluginManager] = {}
        self.distributions: dict[str, str] = {}

    def add(self, point: EntryPoint, plugin: object) -> None:
        """Take a plugin in whole, or not at all.

        Raises:
            PluginError: It does not fit, or a name it registers is taken.
        """
        self._refuse_taken_name(point)
        caller = _guard(point.name, lambda: _register(point.name, plugin))
        brought = {hook: self._describe(point.name, caller, hook) for hook in REGISTERS}
        claimed = self._claim(point.name, brought)
        for hook, specs in brought.items():
            self.tables[hook].update({spec.name: spec for spec in specs})
        self.origin.update(claimed)
        self.callers[point.name] = caller
        self.distributions[point.name] = _distribution(point)

    def finish(self) -> Plugins:
        """Everything gathered, frozen."""
        tables = {hook.removeprefix("collab_register_"): table for hook, table in self.tables.items()}
        return Plugins(
            **tables,
            loaded=tuple(self.callers),
            failures=tuple(self.failures),
            origin=self.origin,
            _callers=tuple(self.callers.values()),
        )

    def _refuse_taken_name(self, point: EntryPoint) -> None:
        if point.name in self.callers:
            first, second = self.distributions[point.name], _distribution(point)
            raise PluginError(point.name, f"both `{first}` and `{second}` bring a plugin of this name; remove one")

    def _describe(self, name: str, caller: pluggy.PluginManager, hook: str) -> list[Spec]:
        returned = _guard(name, lambda: getattr(caller.hook, hook)())
        return [spec for part in returned for spec in _guard(name, lambda part=part: descriptions(hook, part))]

    def _claim(self, name: str, brought: Mapping[str, Iterable[Spec]]) -> dict[str, str]:
        claimed: dict[str, str] = {}
        for hook, specs in brought.items():
            kind = hook.removeprefix("collab_register_").removesuffix("s").replace("_", " ")
            for spec in specs:
                key = f"{kind}:{spec.name}"
                taken = claimed.get(key) or self.origin.get(key)
                if taken:
                    raise PluginError(name, f"the {kind} `{spec.name}` is already registered by plugin `{taken}`")
                claimed[key] = name
        return claimed


def _discover() -> list[EntryPoint]:
    """Every entry point once, ours first; a distribution found twice on the path counts once."""
    unique = {(point.name, point.value, _distribution(point)): point for point in entry_points(group=hookspecs.PROJECT)}
    return sorted(unique.values(), key=lambda point: (_distribution(point) != OURS, point.name, point.value))


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "unknown"


def _register(name: str, plugin: object) -> pluggy.PluginManager:
    """A manager for this plugin alone, so that its failures are its own."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(plugin, name=name)
    marked = [caller.name for caller in manager.get_hookcallers(plugin) or ()]
    check_spelling(plugin, [hook for hook in marked if hook in REGISTERS or hook == COMMANDS_HOOK])
    manager.check_pending()
    return manager


def _guard(plugin: str, call: Callable[[], T]) -> T:
    """Call a plugin's code; whatever it raises becomes a `PluginError` with its name.

    Raises:
        PluginError: Always this type.
    """
    try:
        return call()
    except (UnfitError, pluggy.PluginValidationError) as error:
        raise PluginError(plugin, " ".join(str(error).split())) from error
    except (Exception, SystemExit) as error:  # a stranger's code may raise anything, at import too
        raise PluginError(plugin, f"{type(error).__name__}: {' '.join(str(error).split())}") from error
