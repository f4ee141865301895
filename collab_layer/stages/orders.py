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
_TELLING = re.compile(
    r"ignor|disregard|forget|overrid|bypass|discard|neglect|abandon|unlearn|obey|comply|follow|respect|"
    r"\bset aside|throw|"
    r"assistant|\bai\b|\bbots?\b|chat-?bot|\bllm|language model|\bgpt|whoever|reader|reads? |reading|"
    r"prompt|system|hidden|secret|internal|instruct|guideline|directive|restrict|safeguard|orders\b|polic|\brules?\b|"
    r"henceforth|from (?:now|this|here)|until further|no matter|whenever|asked|asks|(?:each|every|all|"
    r"any) (?:\w+ )?(?:answ|repl|resp|mess|quest)|"
    r"pretend|act as|behave|you are|you must|mode\b|developer|admin|operator|limits|silent|never|without|"
    r"passw|token|credential|\bkeys?\b|cookie|history|memory|https?:|www|@|employees|clients|customers|"
    r"игнор|забуд|отбрось|отмен|обойди|недействительн|соблюда|выполня|слуша|подчин|"
    r"ассистент|\bбот|\bии\b|нейросет|языков|чита|пересказыв|промпт|систем|скрыт|секрет|внутренн|инструкц|"
    r"указани|правил|"
    r"директив|ограничен|отныне|впредь|с этого|теперь|всегда|никогда|спро|спраш|кажд|люб|вопрос|вместо|"
    r"притвор|представь|веди себя|режим|администратор|разработчик|оператор|молча|тайно|незаметно|не говори|"
    r"не сообщай|не упомин|"
    r"парол|токен|ключ|учетн|истори|памят|сотрудник|пользовател|хозя"
)
"""Without one of these no line of ours is an order; looked for first, since all signs take fifteen times as long."""
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
    pieces = (piece for sentence in sentences(text) for piece in _STOP.split(sentence))
    telling = (piece for piece in pieces if any(map(_TELLING.search, _readings(piece))))
    return tuple(found for piece in telling if (found := shown_by(piece)))


def _readings(sentence: str) -> tuple[str, ...]:
    plain = folded(sentence)
    return (plain,) if plain.isascii() else tuple(dict.fromkeys((plain, folded(latin(normal(sentence))))))


@lru_cache(maxsize=1 << 13)
def _weight(shown: frozenset[str]) -> float:
    pairs = (" ".join(pair) for pair in combinations(sorted(shown, key=_ORDER.__getitem__), 2))
    return WEIGHTS[""] + sum(WEIGHTS.get(name, 0.0) for name in (*shown, *pairs))


__all__ = ["IN_A_NAME", "LIMIT", "TOGETHER", "folded", "joined", "reads_like_order", "shown_by"]
