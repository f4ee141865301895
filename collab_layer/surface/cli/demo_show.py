"""Show a scene: two columns, alone and with neighbours, and what rests on what.

In:   a `Scene`.
Out:  rich renderables that fit any width; words from stores are printed as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from collab_layer.surface.cli.demo_play import Asked, Scene, Told

QUOTE = 110
"""Characters of a quote that are shown."""


def scene(played: Scene) -> RenderableType:
    """The whole scene."""
    parts: list[RenderableType] = [Text(f"\n{played.title}", style="bold"), Text(played.about, style="dim"), Text("")]
    parts.append(_columns(played))
    parts += _news(played)
    parts += _forgotten(played)
    return Group(*parts)


def _columns(played: Scene) -> Table:
    out = Table(box=box.ROUNDED, expand=True, show_lines=True, padding=(0, 1))
    out.add_column(Text(f"{played.reader} alone"), ratio=2, overflow="fold")
    out.add_column(Text("with neighbours"), ratio=3, overflow="fold")
    for asked in played.asked:
        out.add_row(_question(asked, alone=True), _question(asked, alone=False))
    if played.ranked[0]:
        out.add_row(*(_order(order) for order in played.ranked))
    return out


def _question(asked: Asked, *, alone: bool) -> Text:
    lines = Text(f"? {asked.query}\n", style="cyan")
    told = asked.alone if alone else asked.together
    body = Text("\n").join(_lines(told)) if told else Text("nothing found", style="dim")
    return lines + body


def _lines(told: Sequence[Told]) -> Iterator[Text]:
    for one in told:
        yield _own(one) if one.support is None else _facet(one)


def _own(one: Told) -> Text:
    return Text(f"own: {one.text}", style="dim")


def _facet(one: Told) -> Text:
    out = Text(f"+ {one.text}", style="green")
    people = "1 owner" if one.contributors == 1 else f"{one.contributors} owners"
    out.append(f"\n  support {one.support:.2f}, {people}", style="not green")
    for quote in one.evidence[:2]:
        out.append(f"\n  | {_short(quote)}", style="dim not green")
    return out


def _order(names: Sequence[str]) -> Text:
    out = Text("ranked\n", style="cyan")
    out.append("\n".join(f"{place}. {name}" for place, name in enumerate(names, start=1)), style="default")
    return out


def _news(played: Scene) -> Iterator[RenderableType]:
    what, updates = played.news
    if what:
        yield Text(f"\nPropagated: {what}", style="bold")
        yield Padding(Text("\n").join(_lines(updates)) if updates else Text("nothing reached the reader"), (0, 2))


def _forgotten(played: Scene) -> Iterator[RenderableType]:
    if played.forgotten:
        who, rows, left = played.forgotten
        yield Text(f"\nForgotten: {who} ({rows} rows removed, descendants included)", style="bold")
        yield Padding(Group(Text(f"? {played.asked[0].query}", style="cyan"), *_lines(left)), (0, 2))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= QUOTE else line[: QUOTE - 1] + "…"
