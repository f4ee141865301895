"""Commands that read: `context`, `neighbors`, `rank`, `answer`, `changes`, `explain`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from collab_layer.surface.cli.lineage import tree
from collab_layer.surface.cli.options import AsOf, Json, Links, Query, Who, moment, required
from collab_layer.surface.cli.output import console, emit, listing, remark, table
from collab_layer.surface.cli.session import session_of

if TYPE_CHECKING:
    from collab_layer import Evidence, Facet
    from collab_layer.types.injection import Received


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("context")(context)
    app.command("neighbors")(neighbors)
    app.command("rank")(rank)
    app.command("answer")(answer)
    app.command("changes")(changes)
    app.command("explain")(explain)


def context(
    ctx: typer.Context,
    entity: Who,
    query: Query = None,
    link: Links = None,
    budget_tokens: Annotated[int, typer.Option("--budget", help="Most tokens of the block.")] = 800,
    as_of: AsOf = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the block as a prompt takes it.")] = False,
    as_json: Json = False,
) -> None:
    """What the neighbours of an entity know, with evidence."""
    with session_of(ctx).layer() as layer:
        memory = layer.context(entity, query=query, links=link or (), budget_tokens=budget_tokens, as_of=moment(as_of))
    if as_json:
        return emit(memory)
    if prompt:
        sys.stdout.write(f"{memory}\n")
        return None
    rows = [(facet.text, facet.confidence, facet.contributors, _evidence(facet)) for facet in memory.facets]
    if rows:
        title = f"What the neighbours of {entity} know ({memory.shape}, {memory.tokens} tokens)"
        columns = ("facet", "support", "from", "evidence")
        console().print(table(title, columns, rows, numeric=("support", "from")))
    else:
        sys.stdout.write(f"Nothing known from the neighbours of {entity}.\n")
    for sentence in memory.degraded:
        remark(f"incomplete: {sentence}")
    return None


def neighbors(
    ctx: typer.Context,
    entity: Who,
    query: Query = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many at most.")] = 16,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """The entities worth reading for one, and why."""
    with session_of(ctx).layer() as layer:
        found = layer.neighbors(entity, query=query, k=k, as_of=moment(as_of))
    if as_json:
        return emit(found)
    if not found:
        sys.stdout.write(f"No neighbours of {entity} may be read.\n")
        return None
    rows = [
        (str(item.entity), item.score, _parts(item.contributions), ", ".join(str(one) for one in item.shared[:4]))
        for item in found
    ]
    console().print(
        table(f"Neighbours of {entity}", ("neighbour", "score", "made of", "shared"), rows, numeric=("score",))
    )
    return None


def rank(
    ctx: typer.Context,
    entity: Who,
    candidates: Annotated[list[str], typer.Argument(metavar="CANDIDATE...", help="As `kind:id`, in any order.")],
    instruction: Annotated[str | None, typer.Option(help="What matters this time.")] = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Put candidates in order for an entity, each with its reasons."""
    with session_of(ctx).layer() as layer:
        ranking = layer.rank(entity, candidates, instruction=instruction, as_of=moment(as_of))
    if as_json:
        return emit(ranking)
    rows = [(place, str(item.entity), item.score, item.rationale) for place, item in enumerate(ranking.items, start=1)]
    columns = ("", "candidate", "score", "because")
    console().print(table(f"For {entity}", columns, rows, numeric=("", "score")))
    if ranking.arm != "neighbours":
        remark(f"By its own memory alone ({ranking.arm}).")
    for sentence in ranking.degraded:
        remark(f"incomplete: {sentence}")
    return None


def answer(
    ctx: typer.Context,
    entity: Who,
    question: Annotated[str, typer.Argument(help="In words.")],
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Answer from what an entity's neighbours noted, sentence by sentence with its evidence."""
    with session_of(ctx).layer() as layer:
        found = layer.answer(entity, question, as_of=moment(as_of))
    if as_json:
        return emit(found)
    evidence = {facet.id: _evidence(facet) for facet in found.facets}
    rows = [(claim.text, "\n".join(evidence[id_] for id_ in claim.facets if id_ in evidence)) for claim in found.claims]
    if rows:
        console().print(table(f"By {found.made_by}", ("claim", "evidence"), rows))
    else:
        sys.stdout.write("Not known.\n")
    for sentence in found.degraded:
        remark(f"incomplete: {sentence}")
    return None


def changes(
    ctx: typer.Context,
    entity: Who,
    since: Annotated[str, typer.Option(help="After this time: ISO 8601 with a zone.")],
    until: Annotated[str | None, typer.Option(help="Up to this time; now if left out.")] = None,
    as_json: Json = False,
) -> None:
    """What changed in the memories that an entity may read, old and new."""
    with session_of(ctx).layer() as layer:
        found = layer.changes(entity, required(since), until=moment(until))
    listing(
        found,
        lambda one: (
            one.at.isoformat(timespec="seconds"),
            str(one.whose),
            one.kind.value,
            one.old or "",
            one.new or "",
        ),
        f"What changed for {entity}",
        ("when", "whose", "", "before", "now"),
        empty=f"Nothing changed in what {entity} may read.",
        as_json=as_json,
    )


def explain(
    ctx: typer.Context,
    id: Annotated[str, typer.Argument(metavar="ID", help="Of a facet, lesson, update, interaction or record.")],
    depth: Annotated[int, typer.Option(help="Generations at most.")] = 8,
    width: Annotated[int, typer.Option(help="Sources of one item at most.")] = 50,
    as_json: Json = False,
) -> None:
    """Everything that something that was shown rests on, as a tree."""
    with session_of(ctx).layer() as layer:
        lineage = layer.explain(id, depth=depth, width=width)
    if as_json:
        return emit(lineage)
    console().print(tree(lineage))
    if lineage.superseded_by is not None:
        sys.stdout.write(f"stepped back for {lineage.superseded_by}\n")
    if lineage.related:
        sys.stdout.write(f"related: {', '.join(lineage.related)}\n")
    if lineage.received:
        rows = [_received(one) for one in lineage.received]
        console().print(table("Received by", ("who", "as", "answers", "last, UTC"), rows, numeric=("answers",)))
    return None


def _received(one: Received) -> tuple[str, str, int, str]:
    last = f"{one.last:%Y-%m-%d %H:%M}" if one.last else ""
    return str(one.entity or f"{one.readers} readers"), one.use, one.answers, last


def _evidence(facet: Facet) -> str:
    return "\n".join(_one(item) for item in facet.evidence[:2])


def _one(item: Evidence) -> str:
    return f"{item.owner or 'a peer'}: {item.quote}" if item.quote else f"{item.owner or item.source}"


def _parts(contributions: Mapping[str, float]) -> str:
    strongest = sorted(contributions.items(), key=lambda pair: (-abs(pair[1]), pair[0]))[:3]
    return ", ".join(f"{name} {value:.2g}" for name, value in strongest)
