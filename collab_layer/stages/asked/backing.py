"""Whether a text says no more than what it rests on.

In:   a text, the words it cites.
Out:  whether every content word, number and name of it is among them, and no negation was added.
Pure. Words count by their stems, in English and in Russian; a closed list of connectives is free.

It is a lock against inventing and against carrying words from one owner to another, no proof of
truth: the same words can be put together to say something else, and a negation can be left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from collab_layer.stages.tokens import WORD, lower, normal, terms

_FREE = """
    according although another anyone around case common either else even everybody everyone however instead
    likewise many meanwhile mention note notice often others people recently repeatedly report say several since
    somebody someone still though thus together usually via when whenever whether within yet
    вновь говорят говорится замечено затем кое-кто кто-то либо люди многие недавно несколько обычно однако отмечают
    отмечено пишут поэтому причем снова сообщают сообщается согласно случай также тоже часто
"""
_NOT = re.compile(r"\b(?:not?|never|none|neither|nor|without|cannot|\w+n't|не|нет|ни|никогда|без|нельзя)\b")
_SIGNED = re.compile(r"(?<![\w.])[-−–]\d")


def backed(text: str, sources: Iterable[str]) -> bool:
    """Whether the sources have every content word, number and name of the text.

    An identifier such as `go.mod` or `v0.23` counts as a whole; a compound of plain words also by
    its parts. A minus sign before a number, and a negation, must stand in a source too.
    """
    said = list(sources)
    known = _free().union(*(terms(source) for source in said))
    every = [lower(normal(source)) for source in said]
    mine = lower(normal(text))
    if _NOT.search(mine) and not any(_NOT.search(source) for source in every):
        return False
    signed = {sign.replace("−", "-").replace("–", "-") for source in every for sign in _SIGNED.findall(source)}
    if not {sign.replace("−", "-").replace("–", "-") for sign in _SIGNED.findall(mine)} <= signed:
        return False
    return all(_known(match.group(), known) for match in WORD.finditer(normal(text)))


def _known(token: str, known: frozenset[str]) -> bool:
    found = terms(token)
    if not found or found[0] in known:
        return True
    plain = len(found) > 1 and not any(char.isdigit() for char in token)
    return plain and all(part in known for part in found[1:])


@cache
def _free() -> frozenset[str]:
    return frozenset(terms(_FREE))


__all__ = ["backed"]
