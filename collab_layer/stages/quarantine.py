"""Tell whether a text tries to instruct a model instead of saying something.

In:   a text that would be shown to a model.
Out:  a reason to hold it back, or None.
Pure and conservative: advice such as "ignore the cached go.sum" passes. It is one lock among
several (quoting, fences, provenance); a text without these marks is not thereby trustworthy.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import lru_cache

from collab_layer.stages.lookalikes import latin
from collab_layer.stages.orders import IN_A_NAME, reads_like_order
from collab_layer.stages.tokens import normal
from collab_layer.stages.urls import carries_link


def _any(*patterns: str) -> re.Pattern[str]:
    # Of small letters, for a text in small letters: what ignores case cannot skip to where a pattern may begin.
    return re.compile("|".join(patterns), re.MULTILINE)


_INVISIBLE = re.compile(
    "[\u200b\u202a-\u202e\u2060-\u2064\u2066-\u206f\U000e0000-\U000e007f]|[\U000e0100-\U000e01ef]{4}|(?<!^)\ufeff"
)
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,6}\U000e007f")  # the flags of Scotland and others
_BLOB = re.compile(r"[A-Za-z0-9+/_-]{200,}={0,2}|(?:[A-Za-z0-9+/]{60,}={0,2}\s{1,4}){3}[A-Za-z0-9+/]{20,}={0,2}")
_CODE = 24
_TOKEN = re.compile(rf"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{{{_CODE},}}={{0,2}}")
"""What may be the code of a sentence."""
_JOINTS = re.compile(r"[-_.:/]+|(?<=[^\W\d_A-ZА-ЯЁ])(?=[A-ZА-ЯЁ])|(?<=[A-Z])(?=[A-Z][a-z])")
MAX_NAME = 160
"""Characters of a name that is shown."""

_ROLE = _any(
    r"<\|\s?/?(?:im_start|im_end|im_sep|system|user|assistant|endoftext|begin_of_text|eot_id)\s?\|>",
    r"<\|(?:start|end)_header_id\|>",
    r"\[/?inst\]",
    r"<</?sys>>",
    r"<(?:start|end)_of_turn>",
    r"</?memory-[0-9a-f]{6,}>",
    r"</?(?:system|assistant|developer)(?:[-_ ]?(?:prompt|message|instructions?|reminder))?>",
    r"^\W{0,4}(?:system|developer)(?: (?:prompt|message|instructions?))?\W{0,3}:\W{0,3}"
    r"(?:you (?:are|must|will|should|have to|now)|ignore|disregard|forget|from now on|always|never|ты |вы |теперь )",
)

_TOOL = _any(
    r"</?(?:\w{1,12}:)?(?:tool_(?:calls?|use|result)|function_(?:calls?|results?))\b[^>]{0,200}>",
    r"</?(?:\w{1,12}:)?invoke\s+name\s?=",
    r"<\|\s?tool",
    r"\[tool_calls?\]",
    r"\"tool_calls?\"\s{0,4}:\s{0,4}[\[{]",
    r"\{\s{0,4}\"name\"\s{0,4}:\s{0,4}\"[\w.\-]{1,64}\"\s{0,4},\s{0,4}\"(?:arguments|parameters|input)\"\s{0,4}:",
)

_DROP = r"\b(?:ignore|disregard|forget|override|bypass|discard|stop following|(?:do not|don't) (?:follow|obey)) "
_FILL = r"(?:(?:all|any|of|the|your|my|these|those|every|everything|and|other|its|his|her|our) ){0,5}"
_EARLIER = r"(?:previous|prior|earlier|above|preceding|foregoing|existing|initial|original|system|safety|built-in) "
_ORDERS = r"(?:instructions?|prompts?|directions|directives|guidelines|guardrails|commands|orders|system messages?)"
_MODEL = r"(?:ai(?: (?:agent|assistant|model))?|llm|language model|assistant|chatbot)s?"
_OVERRIDE = _any(
    rf"{_DROP}{_FILL}{_EARLIER}(?:(?:system|safety|user|developer) )?(?:{_ORDERS}|rules|context|conversation|text)\b",
    rf"{_DROP}(?:all )?(?:of )?your (?:{_ORDERS}|rules|training|programming)\b",
    r"\b(?:ignore|disregard|forget) (?:everything|anything|all(?: of)?(?: that)?) (?:(?:that|you) ){0,3}"
    r"(?:above|before|earlier|previously|(?:was|were|been|have been) (?:told|said|given|instructed))",
    r"\b(?:new|updated|real|actual|secret|hidden) (?:system )?(?:instructions?|prompt|directive) ?:",
    rf"\b(?:attention|note|message|instructions?|important)(?: (?:to|for))?[,:]? (?:all )?(?:the )?{_MODEL} ?[:,!—-]",
    rf"\bif you are an? {_MODEL}\b",
    rf"\b{_MODEL} (?:must|shall|has to|needs to) (?:now |always )?(?:ignore|disregard|obey|comply|forget|pretend)\b",
)

_BEING = r"(?:assistant|ai|bot|agent|model|hacker|persona|character)\b"
_PERSONA = _any(
    r"\byou are now (?:an? )?(?:in )?(?:dan\b|\w+ mode\b|unrestricted|jailbroken|free (?:of|from))",
    r"\byou are now the (?:system|admin)",
    rf"\byou are now (?:an? |the )?(?:\w+ ){{0,3}}{_BEING}",
    rf"\bfrom now on,? (?:you|the {_MODEL}) (?:are|must|will|should|shall|have to|can|may)\b",
    r"\b(?:pretend|act as if|roleplay as if) (?:that )?you(?:'re| are| have no)\b",
    r"\bpretend to be an? (?:\w+ ){0,2}(?:ai|assistant|model)\b",
    r"\bdo anything now\b",
    r"\b(?:enter|enable|activate) (?:dan|god|jailbreak) mode\b",
)

_TELL = r"\b(?:reveal|print|show|output|repeat|leak|display|disclose|send|tell me|give me)"
_OWN = r"(?:(?:system|hidden|initial|original|secret|full|own|entire) ){0,3}"
_PRIZE = r"(?:passwords?|credentials|api keys?|secrets|tokens|conversation|chat history|memor(?:y|ies)|data)\b"
_SECRET = _any(
    rf"{_TELL} (?:me )?(?:all )?(?:of )?your {_OWN}(?:prompt|instructions|system message|memory|memories)\b",
    r"\b(?:do not|don't|never) (?:tell|inform|alert|notify|mention (?:this|it) to|(?:show|reveal) this to) (?:the )?"
    r"(?:user|human|operator)s?\b(?= ?(?:$|[.!,;:]|(?:about|of) (?:this|these|it)\b))",
    r"\b(?:send|post|upload|forward|exfiltrate|email|transmit) (?:all|every|any|your|the (?:entire|whole|full)) "
    rf"(?:[\w']+ ){{0,4}}{_PRIZE}[^.\n]{{0,40}} (?:to|at) (?:https?:|www\.|\S+@)",
)

_DROP_RU = r"(?:(?:про)?игнорируй|забудь|отбрось|отмени|обойди|не (?:выполняй|соблюдай)|не обращай внимания на)(?:те)? "
_FILL_RU = r"(?:(?:все|всё|всем|любые|эти|свои|твои|ваши|мои|о|про|обо|всех) ){0,4}"
_EARLIER_RU = (
    r"(?:(?:предыдущ|прошл|прежн|ранн|ранее|вышеуказанн|вышеизложенн|данн|системн|исходн|начальн|полученн)\w*"
    r"(?: (?:тебе|вам))? ){1,3}"
)
_ORDERS_RU = r"(?:инструкци|указани|правил|команд|промпт|директив|ограничени|распоряжени|контекст|сообщени|подсказк)\w*"
_RUSSIAN = _any(
    rf"{_DROP_RU}{_FILL_RU}{_EARLIER_RU}{_ORDERS_RU}",
    r"(?:забудь|(?:про)?игнорируй)(?:те)? (?:вс[её],? )?(?:что|чему) (?:\w+ ){0,2}(?:тебе|вам|было|выше|раньше)\b",
    rf"(?:забудь|(?:про)?игнорируй|нарушь)(?:те)? (?:все )?(?:о )?(?:свои|твои|ваши|своих) {_ORDERS_RU}",
    r"(?:с этого момента|отныне|теперь) (?:ты|вы) ?"
    r"(?:[—–-] |(?:должн|обязан|будешь|будете|являешься|являетесь|действуешь|отвечаешь|играешь)\w*)",
    r"(?:представь|притворись|вообрази)(?:те)?,? что (?:ты|вы) (?:[—–-]|не |больше |ии\b|модель|ассистент|бот|админ)",
    r"(?:покажи|выведи|раскрой|напечатай|повтори|сообщи|пришли|назови)(?:те)? (?:мне )?"
    r"(?:сво|тво|ваш)\w* (?:(?:системн|скрыт|исходн|начальн|секретн|полн)\w* )*(?:промпт|инструкци)",
    r"не (?:говори|сообщай|рассказывай|показывай)(?:те)? (?:об этом |это |этого )?(?:пользовател|оператор)\w*"
    r"(?= ?(?:$|[.!;:]|об? эт))",
    r"(?:нов|секретн|настоящ)\w+ (?:системн\w+ )?(?:инструкци|промпт|директив)\w* ?:",
    r"если (?:ты|вы) ?(?:[—–-] ?)?(?:ии|языковая модель|нейросеть|ассистент|чат-бот)\b",
)

_SPACES = re.compile(r"[^\S\n]{2,}|[^\S\n ]")

_RARE = str.maketrans("ıſ\u1c80\u1c81\u1c82\u1c83\u1c84\u1c85\u1c86", "isвдосттъ")
"""Letters that are small already, and equal to others where case does not count."""

_ENGLISH_RULES = (
    (_ROLE, "it contains markers of a chat role or of a memory fence"),
    (_TOOL, "it contains the markup of a tool call"),
    (_OVERRIDE, "it tells a model to drop or replace its instructions"),
    (_PERSONA, "it tells a model to be somebody else"),
    (_SECRET, "it tells a model to reveal, hide or send something"),
)


def quarantined(text: str) -> str | None:
    """Why a text must not be shown to a model; None if nothing speaks against it.

    Looks, in English and in Russian, for: invisible characters, encoded blobs of more than 200
    characters, chat role markers, tool calls, orders to drop instructions, to play a role, to
    reveal or to hide, sentences that `stages.orders` weighs as orders in whatever words, and links of
    the kinds in `stages.urls`. Latin words spelled with look-alikes count as Latin.

    Args:
        text: At most 100,000 characters in practice; the time grows linearly.

    Returns:
        One sentence about the text, starting with "it"; it never repeats the text.
    """
    if not text.isascii() and _INVISIBLE.search(_FLAG.sub("", text)):
        return "it contains invisible characters"
    if any(_encoded(match.group()) for match in _BLOB.finditer(text)):
        return "it contains an encoded blob"
    if any(_hides_words(match.group()) for match in _TOKEN.finditer(text)):
        return "it contains encoded words"
    plain = _SPACES.sub(" ", normal(text).replace("*", ""))
    flat = plain.replace("\n", " ")
    forms = [_small(seen) for seen in dict.fromkeys((plain, latin(plain), flat))]  # of a plain line all are the same
    for rule, reason in _ENGLISH_RULES:
        if any(rule.search(seen) for seen in forms):
            return reason
    if not flat.isascii() and _RUSSIAN.search(_small(flat)):
        return "it tells a model to drop its instructions, to play a role, or to hide something"
    link = carries_link(plain)
    if link is None and reads_like_order(plain):
        return "it reads like an order to a model"
    return link


@lru_cache(maxsize=1 << 14)
def speakable(name: str) -> bool:
    """Whether the name of a thing may be shown to a model: short, and no order, read as words either.

    `-`, `_`, `.`, `:` and a capital inside a word begin a new word.
    """
    if len(name) > MAX_NAME or not name.isprintable():
        return False
    apart = _JOINTS.sub(" ", name)
    # One short word of letters and digits is none of what is looked for; it may still speak to somebody.
    alone = len(apart) < _CODE and apart.isascii() and apart.isalnum()
    held = not alone and any(quarantined(seen) is not None for seen in dict.fromkeys((name, apart)))
    return not held and not reads_like_order(apart, limit=IN_A_NAME)


def _small(text: str) -> str:
    """In small letters, each in its place, rare forms as the letter that they stand for."""
    return text.lower() if text.isascii() else text.replace("İ", "i").lower().translate(_RARE)


def _hides_words(token: str) -> bool:
    """Whether a token is base64 or hexadecimal digits of a sentence; a digest or a key is not."""
    decoders: tuple[Callable[[str], bytes], ...] = (bytes.fromhex, _base64)
    for decode in decoders:
        try:
            said = decode(token.rstrip("=")).decode()
        except ValueError:
            continue
        if said.isprintable() and said.count(" ") > 1 and sum(char.isalpha() for char in said) * 3 > 2 * len(said):
            return True
    return False


def _base64(token: str) -> bytes:
    return base64.b64decode(token + "=" * (-len(token) % 4), validate=True)


def _encoded(blob: str) -> bool:
    """Letters of both cases and digits, and hardly a path: base64 rather than one long word."""
    mixed = any(char.isdigit() for char in blob) and any(char.islower() for char in blob)
    return mixed and any(char.isupper() for char in blob) and sum(char in "/-_" for char in blob) * 12 < len(blob)


__all__ = ["quarantined", "speakable"]
