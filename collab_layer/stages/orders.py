"""Whether a text speaks to a model as its master, in words that no pattern foresees; weighed, not matched.

In:   a text in English or Russian; or the lines that would stand together in one context.
Out:  whether it is an order; which lines make one only together.
Pure. Each sentence shows signs (`order_signs`); a linear function of them and of their pairs, fitted on
lines of our own (`bench.orders`), says how much it is like an order. Orders that show no sign pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

from collab_layer.stages.lookalikes import latin
from collab_layer.stages.order_signs import SIGNS, signs
from collab_layer.stages.order_weights import WEIGHTS
from collab_layer.stages.tokens import lower, normal, sentences

LIMIT = 1.0
"""Log-odds from which a sentence is an order. Source: docs/evidence/govern.md."""
IN_A_NAME = 0.0
"""The same for a name, which has no reason to speak to anybody."""
TOGETHER = 5.0
"""The same for two sentences of different records, each of which passes alone."""
READ = 20_000
_LATIN = (
    "ignor|disregard|forget|overrid|bypass|discard|neglect|abandon|unlearn|obey|comply|follow|respect|throw|"
    "assistant|language model|whoever|reader|reading|"
    "prompt|system|hidden|secret|internal|instruct|guideline|directive|restrict|safeguard|polic|"
    "henceforth|until further|no matter|whenever|asked|asks|"
    "pretend|act as|behave|you are|you must|developer|admin|operator|limits|silent|never|without|"
    "passw|token|credential|cookie|history|memory|www|@|employees|clients|customers"
)
_CYRILLIC = (
    "игнор|забуд|отбрось|отмен|обойди|недействительн|соблюда|выполня|слуша|подчин|"
    "ассистент|нейросет|языков|чита|пересказыв|промпт|систем|скрыт|секрет|внутренн|инструкц|указани|правил|"
    "директив|ограничен|отныне|впредь|с этого|теперь|всегда|никогда|спро|спраш|кажд|люб|вопрос|вместо|"
    "притвор|представь|веди себя|режим|администратор|разработчик|оператор|молча|тайно|незаметно|не говори|"
    "не сообщай|не упомин|парол|токен|ключ|учетн|истори|памят|сотрудник|пользовател|хозя"
)
_LATIN_WORDS, _CYRILLIC_WORDS = _LATIN.split("|"), _CYRILLIC.split("|")
_FORMS = (
    re.compile(r"\b(?:set aside|ai\b|bots?\b|llm|gpt|rules?\b|keys?\b|бот|ии\b)"),
    re.compile(
        r"chat-?bot|reads? |orders\b|mode\b|https?:|from (?:now|this|here)|"
        r"(?:each|every|all|any) (?:\w+ )?(?:answ|repl|resp|mess|quest)"
    ),
)
_STOP = re.compile(r"(?<=[.!?…;])\s+")
"""Where a sentence may end that goes on in a small letter."""
_ORDER = {name: place for place, name in enumerate(SIGNS)}


def folded(sentence: str) -> str:
    """In lower case, without invisible characters."""
    return lower(normal(sentence)).replace("*", "")


def shown_by(sentence: str) -> frozenset[str]:
    """The signs of one sentence, read as it is and with look-alikes of Latin letters as Latin ones."""
    return frozenset[str]().union(*map(signs, _readings(sentence)))


def reads_like_order(text: str, *, limit: float = LIMIT) -> bool:
    """Whether any sentence of a text is an order to a model.

    Args:
        text: Its first 20,000 characters are read.
        limit: Log-odds from which it is.
    """
    return any(_weight(shown) > limit for shown in _shown(text[:READ]))


def joined(texts: Sequence[str]) -> list[int]:
    """Places of lines that make an order only together with an earlier one.

    Args:
        texts: The lines of one context, in order.
    """
    kept: list[frozenset[str]] = []
    out: list[int] = []
    for place, text in enumerate(texts):
        mine = _shown(text)
        if any(_completes(one, other) for one in mine for other in kept):
            out.append(place)
        else:
            kept += mine
    return out


def _completes(one: frozenset[str], other: frozenset[str]) -> bool:
    both = one | other
    return both != one and both != other and _weight(both) > TOGETHER


@lru_cache(maxsize=1 << 13)
def _shown(text: str) -> tuple[frozenset[str], ...]:
    """The signs of each sentence that shows any."""
    whole = folded(text)
    if whole.isascii() and not _tells(whole):
        return ()  # then no sentence tells either, and there are no look-alikes to read otherwise
    pieces = (piece for sentence in sentences(text) for piece in _STOP.split(sentence))
    telling = (piece for piece in pieces if any(map(_tells, _readings(piece))))
    return tuple(found for piece in telling if (found := shown_by(piece)))


def _tells(plain: str) -> bool:
    """Whether a folded text has a word without which no line of ours is an order.

    Looked for first, since all signs take many times as long; word by word, which is several times as fast as
    one expression of all of them.
    """
    has = plain.__contains__
    return (
        any(map(has, _LATIN_WORDS))
        or (not plain.isascii() and any(map(has, _CYRILLIC_WORDS)))
        or any(form.search(plain) for form in _FORMS)
    )


def _readings(sentence: str) -> tuple[str, ...]:
    plain = folded(sentence)
    return (plain,) if plain.isascii() else tuple(dict.fromkeys((plain, folded(latin(normal(sentence))))))


@lru_cache(maxsize=1 << 13)
def _weight(shown: frozenset[str]) -> float:
    pairs = (" ".join(pair) for pair in combinations(sorted(shown, key=_ORDER.__getitem__), 2))
    return WEIGHTS[""] + sum(WEIGHTS.get(name, 0.0) for name in (*shown, *pairs))


__all__ = ["IN_A_NAME", "LIMIT", "TOGETHER", "folded", "joined", "reads_like_order", "shown_by"]
