"""Neighbours' records as numbered lines of a prompt: what is said twice stands there once.

In:   `Snippet`s, display names of their links, a fence, room in tokens.
Out:  a `Page`: lines under the ids m1, m2, …, and whose records each stands for.
Pure. Only RECORDS-level snippets; texts in quarantine are left out whole, with their links.

    m1 p1 p2: "words of a memory" about "a name" -> "how it ended"
    m2 3 owners have "a thing"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from collab_layer.stages.compress import compress, negated
from collab_layer.stages.fence import Fence
from collab_layer.stages.lessons import shorten
from collab_layer.stages.tokens import lower, terms
from collab_layer.types.graph import Snippet
from collab_layer.types.scope import Level
from collab_layer.types.tokens import estimate_tokens

WORDS_TOKENS = 36
OUTCOME_TOKENS = 14
NAME_TOKENS = 12
TEXTS_READ = 120
BARE_READ = 32
BARE_SHARE = 0.35
"""Of the room, what is kept for things without words where there are both."""
ID_TOKENS = 2
"""Of each line's id in the schema of the reply."""
_NAMES = 2
_OWNERS_NAMED = 3
_FRAME_TOKENS = 6


@dataclass(frozen=True, slots=True)
class Group:
    """Snippets that say the same, or hold the same things; the first of them is shown.

    Attributes:
        members: Strongest first, with their words cut to what may be shown.
        names: Of the things held, or of what the text refers to without naming it; quoted.
        stems: Of all words of each member: text, outcome, names of its links.
        whole: All words of the first, for compression; empty for things held.
    """

    members: tuple[Snippet, ...]
    names: tuple[str, ...]
    stems: tuple[frozenset[str], ...]
    whole: str = ""

    @property
    def owners(self) -> list[int]:
        """Whose, strongest first."""
        return list(dict.fromkeys(member.owner for member in self.members))

    @property
    def mass(self) -> float:
        """The weights of its owners together."""
        return sum({member.owner: member.weight for member in self.members}.values())


@dataclass(slots=True)
class Page:
    """Lines, as long as there is room.

    Attributes:
        fence: Around them.
        room: Tokens left, those of the ids in the schema included.
        lines: As in the prompt.
        shown: `m1`, then `m1.2`, … for further snippets of the same line.
        stems: As `shown`, to the stems of all words of that snippet.
    """

    fence: Fence
    room: int
    lines: list[str] = field(default_factory=list[str])
    shown: dict[str, Snippet] = field(default_factory=dict[str, Snippet])
    stems: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    _owners: dict[int, str] = field(default_factory=dict[int, str])

    def put(self, group: Group, said_by_them: str) -> None:
        """Add a line, unless it does not fit or could end the fence."""
        id_ = f"m{len(self.lines) + 1}"
        line = f"{id_} {said_by_them}"
        cost = estimate_tokens(line) + 1 + ID_TOKENS
        if cost > self.room or not self.fence.holds(line):
            return
        self.room -= cost
        self.lines.append(line)
        for number, (member, stems) in enumerate(zip(group.members, group.stems, strict=True), 1):
            key = id_ if number == 1 else f"{id_}.{number}"
            self.shown[key], self.stems[key] = member, stems

    def who(self, owners: Sequence[int]) -> str:
        """Owners by aliases of this page."""
        named = [self._owners.setdefault(owner, f"p{len(self._owners) + 1}") for owner in owners[:_OWNERS_NAMED]]
        rest = len(owners) - len(named)
        return " ".join(named) + (f" and {rest} more" if rest else "")


def lay_out(page: Page, snippets: Sequence[Snippet], names: Mapping[int, str], query: str | None) -> None:
    """Fill a page: first what was said, then what is merely held, those of several owners first.

    With a query the snippets are records found for it, best first, whose scores are no shares: their
    owners weigh the same. Things are then laid out only if they share a word with it, or if nothing
    was said at all.
    """
    quotable = (snippet for snippet in snippets if snippet.level >= Level.RECORDS)
    usable = [replace(s, weight=1.0) for s in quotable] if query else [s for s in quotable if s.weight > 0]
    spoken = _spoken(page.fence, usable, names)
    wanted = frozenset(terms(query or ""))
    held = _held(page.fence, usable, names, wanted if spoken else frozenset[str]())
    kept_free = int(page.room * BARE_SHARE) if held else 0
    for group, words in _compressed(spoken, page.room - kept_free, query):
        _put_words(page, group, words)
    for group in held:
        owners = len(group.owners)
        has = f"{owners} owner{'s have' if owners > 1 else ' has'} {', '.join(group.names)}"
        page.put(group, has)


def _put_words(page: Page, group: Group, words: str) -> None:
    first = replace(group.members[0], text=words)
    line = page.fence.said(words, 2 * WORDS_TOKENS)
    ended = page.fence.said(first.outcome, OUTCOME_TOKENS) if first.outcome else None
    if line is None:
        return
    about = f"about {', '.join(group.names)}" if group.names else ""
    parts = [f"{page.who(group.owners)}: {line}", about, f"-> {ended}" if ended else ""]
    said = " ".join(part for part in parts if part)
    page.put(replace(group, members=(first, *group.members[1:])), said)


def _spoken(fence: Fence, usable: Sequence[Snippet], names: Mapping[int, str]) -> list[Group]:
    """Snippets with words, of each owner by turns as given; those with the same content words together."""
    turn: Counter[int] = Counter()
    queue: list[tuple[int, float, int, Snippet]] = []
    for place, snippet in enumerate(s for s in usable if s.text):
        queue.append((turn[snippet.owner], -snippet.weight, place, snippet))
        turn[snippet.owner] += 1
    same: dict[tuple[frozenset[str], bool], list[tuple[Snippet, Snippet]]] = {}
    for *_, snippet in sorted(queue, key=lambda one: one[:3])[:TEXTS_READ]:
        whole = f"{snippet.text}\n{snippet.outcome or ''}"
        content = frozenset(terms(whole))
        short = _cut(fence, snippet)
        if content and short is not None:
            same.setdefault((content, negated(whole)), []).append((snippet, short))
    groups: list[Group] = []
    for (content, _), pairs in same.items():
        stems = tuple(content | _stems(names[link] for link in one.links if link in names) for one, _ in pairs)
        first = pairs[0][0]
        groups.append(Group(tuple(cut for _, cut in pairs), _unsaid(fence, first, names), stems, first.text or ""))
    return groups


def _cut(fence: Fence, snippet: Snippet) -> Snippet | None:
    """The snippet with its own words in short; None if they may not be shown."""
    text, outcome = snippet.text or "", snippet.outcome or ""
    if fence.said(text, WORDS_TOKENS) is None or (outcome and fence.said(outcome, OUTCOME_TOKENS) is None):
        return None
    return replace(snippet, text=shorten(text, WORDS_TOKENS), outcome=shorten(outcome, OUTCOME_TOKENS) or None)


def _unsaid(fence: Fence, snippet: Snippet, names: Mapping[int, str]) -> tuple[str, ...]:
    """Names of what the text refers to without naming it."""
    text = lower(snippet.text or "")
    missing = (names[link] for link in snippet.links if link in names and lower(names[link]) not in text)
    return tuple(islice((line for name in missing if (line := fence.said(name, NAME_TOKENS)) is not None), _NAMES))


def _held(fence: Fence, usable: Sequence[Snippet], names: Mapping[int, str], wanted: frozenset[str]) -> list[Group]:
    """Snippets without words by the names of their things: those of several owners, then by weight, then by name.

    Where words are wanted, only things that have one of them.
    """
    same: dict[tuple[str, ...], list[Snippet]] = {}
    for snippet in sorted((s for s in usable if not s.text), key=lambda s: (-s.weight, s.owner, -s.at, s.source)):
        named = tuple(names[link] for link in snippet.links if link in names)[:_NAMES]
        if named and not (wanted and wanted.isdisjoint(_stems(named))):
            same.setdefault(named, []).append(snippet)
    groups = [Group(tuple(members), named, (_stems(named),) * len(members)) for named, members in same.items()]
    groups.sort(key=lambda group: (len(group.owners) < 2, -round(group.mass, 9), group.names))
    return list(islice(_quoted(fence, groups), BARE_READ))


def _quoted(fence: Fence, groups: Iterable[Group]) -> Iterator[Group]:
    """Groups under quoted names, without those of which no name may be shown."""
    for group in groups:
        lines = tuple(line for name in group.names if (line := fence.said(name, NAME_TOKENS)) is not None)
        if lines:
            yield replace(group, names=lines)


def _compressed(groups: Sequence[Group], room: int, query: str | None) -> list[tuple[Group, str]]:
    most = max((group.mass for group in groups), default=1.0)
    kept = compress(
        [group.whole for group in groups],
        budget_tokens=max(0, room),
        query=query,
        per_text=WORDS_TOKENS,
        beside=[_FRAME_TOKENS + ID_TOKENS + _beside(group) for group in groups],
        weight=[0.5 + group.mass / most for group in groups],
        keep_repeats=True,
    )
    return [(groups[at], words) for at, words in kept]


def _beside(group: Group) -> int:
    owners = 2 * min(len(group.owners), _OWNERS_NAMED + 1)
    return owners + estimate_tokens(" ".join(group.names)) + estimate_tokens(group.members[0].outcome or "")


def _stems(names: Iterable[str]) -> frozenset[str]:
    return frozenset(terms(" ".join(names)))


__all__ = ["Group", "Page", "lay_out"]
