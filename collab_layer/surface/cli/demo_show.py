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

from collab_layer.surface.cli.demo_scene import Forgotten, News, Placed, Scene, Told

QUOTE = 110
"""Characters of a quote that are shown."""


def scene(played: Scene) -> RenderableType:
    """The whole scene."""
    count = f"{played.records} records of {played.owners} owners in Mem0 and the graph."
    head = [Text(f"\n{played.title}", style="bold"), Text(f"{played.about} {count}\n", style="dim")]
    return Group(*head, _columns(played), *_news(played.news), *_forgotten(played.forgotten))


def _columns(played: Scene) -> Table:
    out = Table(box=box.ROUNDED, expand=True, show_lines=True, padding=(0, 1))
    out.add_column(Text(f"{played.reader} alone"), ratio=2, overflow="fold")
    out.add_column(Text("with neighbours"), ratio=3, overflow="fold")
    for asked in played.asked:
        out.add_row(_answer(asked.query, asked.alone), _answer(asked.query, asked.together))
    if played.ranks:
        ranks = played.ranks
        by_hand = "ranked, neighbours let in by hand: so few choices open no gate"
        out.add_row(_order("ranked", ranks.alone, ranks.taken), _order(by_hand, ranks.together, ranks.taken))
    return out


def _answer(query: str, told: Sequence[Told]) -> Text:
    body = Text("\n").join(_lines(told)) if told else Text("nothing found", style="dim")
    return Text.assemble((f"? {query}\n", "cyan"), body)


def _lines(told: Sequence[Told]) -> Iterator[Text]:
    for one in told:
        yield Text(f"own: {one.text}", style="dim") if one.support is None else _facet(one, one.support)


def _facet(one: Told, support: float) -> Text:
    people = "1 owner" if one.contributors == 1 else f"{one.contributors} owners"
    unnamed = "" if one.evidence else ", not named"
    out = Text.assemble((f"+ {one.text}", "green"), f"\n  support {support:.2f}, {people}{unnamed}")
    for quote in one.evidence[:2]:
        out.append(f"\n  | {_short(quote)}", style="dim")
    return out


def _order(title: str, placed: Sequence[Placed], taken: str) -> Text:
    out = Text(title, style="cyan")
    for place, one in enumerate(placed, start=1):
        mark = " <- liked next" if one.name == taken else ""
        out.append(f"\n{place}. {one.name}{mark}", style="green" if mark else "default")
        out.append(f"\n   {one.rationale}", style="dim")
    return out


def _news(news: News | None) -> Iterator[RenderableType]:
    if news:
        yield Text(f"\nPropagated: {news.what}.", style="bold")
        yield Padding(_answer("no question asked", news.updates), (0, 0, 0, 2))


def _forgotten(forgotten: Forgotten | None) -> Iterator[RenderableType]:
    if forgotten:
        rows = f"{forgotten.rows} rows, all that was derived included"
        yield Text(f"\nForgotten: {forgotten.who} ({rows}). The first question again:", style="bold")
        yield Padding(_answer(forgotten.query, forgotten.left), (0, 0, 0, 2))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= QUOTE else line[: QUOTE - 1] + "…"
