"""A long note as one short lesson: "When <task>. Did: <outcome>".

In:   a text, and what is known of how it ended.
Out:  one line of at most `max_tokens` estimated tokens; words are never cut. A plain note of a few
      sentences stays whole.
Pure. Source of the form and of its length: docs/evidence (short records gave more than any curation).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from collab_layer.stages.tokens import STOP, lower, says, sentences
from collab_layer.types.tokens import estimate_tokens

MAX_TOKENS = 50
NOTE_TOKENS = 90
"""Of a note that tells no outcome: what it says may stand in any of its sentences. Source: docs/evidence/govern.md."""
_ENOUGH = 3
_PLAIN_VERBS = frozenset(("interacted", "remembered", "described", "read", "viewed", "mentioned", "noted", "said"))
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_LATIN = re.compile("[A-Za-z]")
_LEAD = re.compile(r"^(?:when|if|task|когда|если|задача)\b[:,]?\s+", re.I)
_WORD = re.compile(r"[^\W_]")
_READ = 1_500
_LOOSE = " ,;:—–-"
"""What no shortened line ends in."""


def lesson(
    text: str,
    *,
    links: Sequence[str] = (),
    outcome: str | None = None,
    verb: str | None = None,
    max_tokens: int = MAX_TOKENS,
) -> str:
    """Boil a text down to one line.

    With an outcome or links: "When <first informative sentence>. Did: <verb, outcome, links>", the
    second half at most half of the budget unless the first leaves more. Otherwise the first
    informative sentence alone. Texts mostly in Cyrillic get Russian labels.

    Args:
        text: The note; its first 1,500 characters are read.
        links: Display names of what it refers to.
        outcome: How it ended.
        verb: What was done, such as `solved`; verbs that say nothing are left out.
        max_tokens: Budget by `estimate_tokens`, >= 8.

    Returns:
        One line; empty if neither the text nor the outcome has a word.

    Raises:
        ValueError: `max_tokens` is below 8.
    """
    if max_tokens < 8:
        raise ValueError(f"the budget of {max_tokens} tokens is too small, at least 8 are needed")
    task = _informative(text)
    done = _done(links, outcome, verb)
    if not done:
        return shorten(task, max_tokens)
    when, did = ("Когда", "Сделано:") if mostly_cyrillic(task or done) else ("When", "Did:")
    task = _opened(_LEAD.sub("", task).rstrip(" .;:,!…"))
    room = max_tokens - estimate_tokens(f"{when} . {did}") - 1
    short_task = _cut(task, max(room - estimate_tokens(done), room // 2))
    short_done = shorten(done, room - estimate_tokens(short_task))
    head = f"{when} {short_task}{'' if short_task.endswith(('…', '?')) else '.'}" if short_task else ""
    return " ".join(part for part in (head, f"{did} {short_done}" if short_done else "") if part)


def note(text: str, *, max_tokens: int = NOTE_TOKENS) -> str:
    """A text that tells no outcome, on one line: whole if it fits.

    Otherwise its first informative sentence, shortened if need be, and those after it while whole ones fit.

    Args:
        text: The note; of a long one the first 1,500 characters are read.
        max_tokens: Budget by `estimate_tokens`.

    Returns:
        One line; empty if the text has no word.
    """
    whole = " ".join(text[:_READ].split())
    if len(text) <= _READ and estimate_tokens(whole) <= max_tokens:
        return whole if _WORD.search(whole) else ""
    first = _informative(text)
    line, after = shorten(first, max_tokens), False
    for sentence in (" ".join(one.split()) for one in sentences(text[:_READ])):
        if after and estimate_tokens(f"{line} {sentence}") > max_tokens:
            break
        line = f"{line} {sentence}" if after else line
        after = after or sentence == first == line
    return line


def mostly_cyrillic(text: str) -> bool:
    """Whether a text has more Cyrillic than Latin letters."""
    return not text.isascii() and len(_CYRILLIC.findall(text)) > len(_LATIN.findall(text))


def shorten(text: str, max_tokens: int) -> str:
    """The leading words of a text, on one line, within a budget; `…` where something is left out.

    A word that alone is over the budget is left out whole.
    """
    return _cut(" ".join(text.split()), max_tokens)


def _cut(line: str, max_tokens: int) -> str:
    """A text on one line, shortened."""
    if estimate_tokens(line) <= max_tokens:
        return line
    # Counted in quarters of a token, so that adding a word needs no second count of the whole.
    whole = room = 4 * max_tokens - 4
    if line.isascii():  # where a word ends is where its quarters end
        cut = line.rfind(" ", 0, whole + 1)
        end = line.find(" ", cut + 1) if cut > 0 else -1
        if cut > 0 and (end if end > 0 else len(line)) - cut <= whole:
            return f"{line[:cut].rstrip(_LOOSE)}…"
    kept: list[str] = []
    for word in line.split(" "):
        cost = _quarters(word) + bool(kept)
        if cost > room:
            if cost <= whole:
                break
            continue
        kept.append(word)
        room -= cost
    return f"{' '.join(kept).rstrip(_LOOSE)}…" if kept else ""


def _quarters(word: str) -> int:
    return len(word) if word.isascii() else sum(1 if char < "\x80" else 2 for char in word)


def _informative(text: str) -> str:
    """The first sentence with three content words; failing that, the one with most."""
    best, most = "", -1
    for sentence in sentences(text[:_READ]):
        count = says(sentence, _ENOUGH, limit=100)
        if count >= _ENOUGH:
            return " ".join(sentence.split())
        if count > most:
            best, most = sentence, count
    return " ".join(best.split()) if _WORD.search(best) else ""


def _opened(task: str) -> str:
    """Small first letter where the first word is surely no name."""
    first = task.split(" ", 1)[0]
    return task[:1].lower() + task[1:] if lower(first) in STOP and first != "I" else task


def _done(links: Sequence[str], outcome: str | None, verb: str | None) -> str:
    said = " ".join((outcome or "").split()).rstrip(" .")
    fresh = [name for link in links if (name := " ".join(link.split())) and name.casefold() not in said.casefold()]
    parts = [said, ", ".join(dict.fromkeys(fresh))]
    done = "; ".join(part for part in parts if part)
    if done and not said and verb and verb not in _PLAIN_VERBS:
        return f"{verb} {done}"
    return done or (verb if verb and verb not in _PLAIN_VERBS else "")


__all__ = ["MAX_TOKENS", "NOTE_TOKENS", "lesson", "mostly_cyrillic", "note", "shorten"]
