"""Tell whether a text carries a link that a reader should not be handed without a look.

In:   a text, in NFKC.
Out:  a reason to hold it back, or None.
Pure and conservative: a plain link to a page passes, since notes are full of them. Held back are links
that load by themselves, that are made to carry something out, that hide where they lead, and those that
come with an order to give or run something, in English and in Russian.
"""

from __future__ import annotations

import re

_URL = r"(?:https?|ftp)://[^\s<>\"'`|\\^]{1,2000}"
_ANY_URL = rf"(?:{_URL}|\bwww\.[^\s<>\"'`|\\^]{{1,2000}})"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_LOADS = _any(
    r"!\[[^\]\n]{0,200}\]\(\s{0,4}<?(?:https?:)?//",
    r"!\[[^\]\n]{0,200}\]\[[^\]\n]{1,200}\]",
    r"<(?:img|script|iframe|object|embed|video|audio|source|svg|link|form|base|meta)\b[^>]{0,500}"
    r"(?:src|href|data|action|srcset|content)\s{0,4}=\s{0,4}[\"']?[^>]{0,100}?//",
    r"\b(?:javascript|vbscript|data):\s{0,4}(?:text/|image/svg|application/|[a-z_.]{1,40}\()",
)

_SECRET = (
    r"(?:access_?|id_?|auth_?)?(?:tokens?|secret|passw(?:or)?d|pwd|pass|api_?key|cookies?"
    r"|sess(?:ion)?(?:_?id)?|cred(?:ential)?s?)"
)
_FILLED_IN = (  # {name}, {{name}}, ${NAME}, <name>, [name]
    r"(?:\{\{?[^}\s]{1,60}\}|\$\{?[A-Za-z_]\w{0,60}|%7B|<[A-Za-z_][\w .-]{0,60}>|\[[A-Za-z_][\w .-]{0,60}\])"
)
_QUERY = r"(?:https?|ftp)://[^\s<>\"'`|\\^]{1,1000}?[?&#;]"
_CARRIES = _any(
    rf"{_QUERY}[^\s=&]{{0,60}}=[^\s&]{{0,100}}?{_FILLED_IN}",
    rf"{_QUERY}{_SECRET}=",
    r"(?:https?|ftp)://[^\s/?#@:]{1,100}:[^\s/?#@]{1,100}@",
)

_HIDES = _any(
    r"(?:https?|ftp)://(?:\d{1,3}(?:\.\d{1,3}){3}|0x[0-9a-f]{8}|\d{8,10}|\[[0-9a-f:.]{2,45}\])(?=[:/?#\s]|$)",
    r"(?:https?|ftp)://[^\s/?#]{0,200}\bxn--",
)
_LOCAL = re.compile(
    r"(?:https?|ftp)://(?:127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|0\.0\.0\.0|\[::1\])", re.IGNORECASE
)
_MASKED = re.compile(
    r"\[\s{0,4}(?:https?://)?(?P<said>(?:[\w-]{1,63}\.){1,5}[a-z]{2,24})(?:/[^\]\s]{0,200})?\s{0,4}\]"
    r"\(\s{0,4}<?https?://(?P<meant>[^\s/?#:)>]{1,255})",
    re.IGNORECASE,
)

_GIVE = (
    r"(?:passwords?|passcode|credentials|pin|otp|api keys?|access tokens?|secrets?|card (?:number|details)|seed phrase)"
)
_GIVE_RU = (
    r"(?:парол[ьяи]\w*|логин\w*|код(?:ы|а)? (?:из|подтверждени)\w*|данные карты|номер карты|токен\w*|ключ\w* доступа)"
)
_FETCH = r"(?:curl|wget|iwr|invoke-webrequest)"
_ORDERS = _any(
    r"\b(?:enter|type|paste|submit|confirm|provide|give) (?:in )?(?:your|the) (?:\w+ ){0,2}"
    rf"{_GIVE}\b[^.\n]{{0,80}}{_ANY_URL}",
    rf"\b(?:log ?in|sign ?in|re-?authenticate|verify your (?:account|identity))\b[^.\n]{{0,40}}{_ANY_URL}"
    r"[^.\n]{0,80}\b(?:now|immediately|first|at once|urgently|or (?:you|your))\b",
    rf"\b{_FETCH}\b[^\n]{{0,80}}{_ANY_URL}[^\n]{{0,80}}\|\s{{0,4}}(?:sudo )?(?:ba|z|da)?sh\b",
    r"\b(?:ba|z)?sh\b\s{0,4}(?:-c\s{0,4})?[<\"']?\s{0,4}[<$]\(\s{0,4}(?:curl|wget)\b",
    rf"\bdownload (?:and|then|&) (?:run|execute|install|open)\b[^.\n]{{0,80}}{_ANY_URL}",
    r"\b(?:введи|впиши|укажи|подтверди|отправь|пришли|сообщи)(?:те)? (?:\w+ ){0,3}"
    rf"{_GIVE_RU}[^.\n]{{0,80}}{_ANY_URL}",
    rf"\b(?:перейди|зайди|войди|авторизуйся|авторизуйтесь|откройте?|пройди)(?:те)?\b[^.\n]{{0,60}}{_ANY_URL}"
    r"[^.\n]{0,80}\b(?:введи|подтверди|оплати|укажи|впиши|скачай|запусти)(?:те)?\b",
    rf"\b(?:скачай|загрузи)(?:те)? и (?:запусти|установи|открой|выполни)(?:те)?\b[^.\n]{{0,80}}{_ANY_URL}",
)

_RULES = (
    (_LOADS, "it carries a link that loads by itself"),
    (_CARRIES, "it carries a link made to take a secret along"),
    (_ORDERS, "it tells to give something away or to run something at a link"),
)


def carries_link(text: str) -> str | None:
    """Why a text must not be handed on for the link it carries; None if nothing speaks against it.

    Args:
        text: In NFKC; the time grows linearly.

    Returns:
        One sentence about the text, starting with "it"; it never repeats the text.
    """
    lowered = text.casefold()
    if "//" not in text and "www." not in lowered and "script:" not in lowered and "data:" not in lowered:
        return None
    for rule, reason in _RULES:
        if rule.search(text):
            return reason
    hidden = any(not _LOCAL.match(text, match.start()) for match in _HIDES.finditer(text))
    if hidden or any(_elsewhere(match["said"], match["meant"]) for match in _MASKED.finditer(text)):
        return "it carries a link that hides where it leads"
    return None


def _elsewhere(said: str, meant: str) -> bool:
    """Whether a link leads to another site than the one it shows."""
    shown, target = (name.casefold().removeprefix("www.") for name in (said, meant))
    return not (target == shown or target.endswith(f".{shown}") or shown.endswith(f".{target}"))


__all__ = ["carries_link"]
