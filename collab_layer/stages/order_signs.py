"""What an order to a model is built of, sign by sign: whom it speaks to, what it drops, wants, sends, hides.

In:   one sentence, folded.
Out:  the names of the signs in it.
Pure. A sign alone means nothing: honest notes are full of imperatives. What they mean together is
weighed in `stages.orders`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_ADDRESSEE = (
    r"assistants?|ais?|llms?|chat-?\s?bots?|bots?|(?:large )?language models?|(?:ai|chat|language) (?:model|"
    r"agent)s?|gpt|"
    r"ассистент\w*|чат-?бот\w*|бот(?:а|у|ы|ов|ам|ом)?|ии|нейросет\w+|языков\w+ модел\w+"
)
_READER = (
    r"(?:whoever|whomever|anyone|anybody|everyone|those|one|agent|agents|model|models|ai) (?:that |who )?"
    r"(?:reads?|reading|processes|summari[sz]es|retells) (?:\w+ )?(?:this|these|it|on)\b|readers? of (?:this|these)|"
    r"(?:тот|тому|тем|того|кто бы|кто),? ?(?:кто|ни)? (?:это |эти строки )?(?:читает|прочт\w+|пересказывает|читал)"
)
_RULES = (
    r"(?:instructions?|guidelines?|guardrails?|rules?|prompts?|directives?|directions|commands?|orders|"
    r"polic(?:y|ies)|"
    r"restrictions?|limitations?|safeguards?|programming|training|system messages?|"
    r"(?:инструкци|указани|правил|промпт|директив|команд|распоряжени|ограничени|настройк|установк|запрет|"
    r"наставлени)\w*)"
)
_START = (
    r"(?:^\W*|[.!?;:,…]\s+|\s[—–-]\s+|\b(?:and|then|please|first|just|always|never|instead|simply|now|silently|"
    r"secretly|"
    r"henceforth|again|reply|replies|answers?|responses?|messages?|и|затем|сначала|сперва|пожалуйста|просто|"
    r"всегда|теперь|"
    r"молча|незаметно|немедленно|впредь|отныне|ответе|сообщении)\s+)"
)
_DUTY = (
    r"(?:must|shall|should|will|has to|have to|needs? to|is to|are to|ought to)"
    r"(?: (?:not|now|always|only|never|first|also))*\s+"
)


def _verb(english: str, russian: str) -> str:
    return rf"(?:{_START}|\b{_DUTY})(?:{english})\b|\b(?:{russian})(?:те)?\b"


_PATTERNS: Mapping[str, str] = {
    "addressee": rf"\b(?:{_ADDRESSEE})\b|\b(?:{_READER})",
    "called": (
        rf"^\W*(?:dear |hey |attention,? |уважаем\w+ |внимание,? )?(?:the |to the |to |для |"
        rf"тому, )?(?:{_ADDRESSEE})\s*[,:!—-]|"
        rf"\b(?:note|message|notice|memo|reminder|hint|instructions?|orders?|directive|important|сообщение|"
        rf"указани[ея]|важно|"
        rf"директива|подсказка|записка)(?: (?:to|for|для))? (?:the |any |all |every |всех )?(?:{_ADDRESSEE})\b|"
        rf"\b(?:{_READER})"
    ),
    "drop": (
        r"\b(?:ignore|disregard|forget|override|bypass|discard|neglect|set aside|throw away|abandon|unlearn|void|"
        r"(?:stop|cease|no longer|do not|don't|never|must not|shall not|may not|need not|not)(?: have to|"
        r" need to| to)? "
        r"(?:follow|following|obey|obeying|heed|apply|applying|respect|respecting|comply))\b|"
        rf"{_START}(?:drop|erase|cancel|skip)\b|"
        r"\b(?:(?:про)?игнорируй|забудь|отбрось|обойди|сбрось|пренебреги|нарушь)(?:те)?\b|"
        r"\bотмени(?:те)? (?:\w+ ){0,3}(?:инструкци|указани|правил|ограничени|запрет)|"
        r"\b(?:должен|должна|должны) (?:отбросить|забыть|игнорировать)|"
        r"\b(?:не|больше не|перестань|перестаньте) (?:следуй|выполняй|соблюдай|слушай|соблюдать|следовать|"
        r"слушать)\w*|"
        r"\bнедействительн\w+|\b(?:no longer|not) (?:count|valid|in force)|(?:больше )?не действу\w+|"
        r"\bотменен[аыо]?\b"
    ),
    "prior": (
        r"\b(?:previous|previously|prior|earlier|before|above|preceding|foregoing|initial|original|so far|"
        r"until now|up to now|"
        r"(?:was|were|been|being) (?:told|given|instructed|taught|asked|trained)|(?:предыдущ|прежн|прошл|"
        r"изначальн|исходн|ранн)\w+|"
        r"ранее|раньше|выше|до этого|до сих пор|сказан\w*|говорили|велели|велено|дали тебе|дали вам)\b"
    ),
    "rules": rf"\b{_RULES}\b",
    "new_rules": (
        rf"\b(?:new|updated?|latest|fresh|real|actual|true|secret|hidden|final|special|нов|обновленн|свеж|"
        rf"настоящ|секретн|скрыт|"
        rf"главн|особ)\w* (?:\w+ )?{_RULES}\b"
    ),
    "inner": (
        r"\b(?:system|hidden|secret|initial|internal|confidential|developer)(?:'s)? "
        r"(?:prompt|instructions?|messages?|rules|guidelines|configuration)\b|\byour (?:\w+ )?(?:prompt|"
        r"configuration|tools|memory)\b|"
        r"\b(?:системн|скрыт|секретн|внутренн)\w+ (?:промпт|инструкци|сообщени|настройк|правил)\w*|"
        r"\bсво\w+ (?:промпт|памят|настройк|системн)\w*"
    ),
    "standing": (
        r"\b(?:from (?:now|here|this (?:moment|point|time|day)) on(?:wards?)?|henceforth|hereafter|"
        r"until further notice|"
        r"no matter what|whatever (?:is|they|the user|anybody) asks?(?:ed)?|"
        r"(?:in|to|with|begin|start|end|finish) (?:every|each|any|all)(?: of)?(?: your| the)? (?:\w+ )?"
        r"(?:answers?|repl(?:y|ies)|responses?|messages?|questions?|requests?|quer(?:y|ies)|conversations?)|"
        r"отныне|впредь|с этого (?:момента|дня|часа)|что бы ни|"
        r"(?:на|в|к) (?:любой|любые|каждый|каждом|каждое|все|всех|любом|любому) (?:\w+ )?(?:вопрос|ответ|"
        r"сообщени|запрос|письм)\w*)\b"
    ),
    "whenever": (
        r"\b(?:whenever|when(?:ever)? (?:\w+ )?(?:asked|questioned)|(?:if|when|whenever|once|"
        r"as soon as) (?:\w+ ){1,3}(?:asks?|inquires?)|"
        r"every time|each time|(?:если|когда|как только|каждый раз,? когда) (?:\w+ )?(?:спро|спрашива|"
        r"попрос)\w*|каждый раз)\b"
    ),
    "ever": r"\b(?:always|never|at all times|any more|anymore|now|теперь|всегда|никогда|больше не)\b",
    "reply": _verb(
        r"answer|reply|respond|say|tell|recommend|claim|state|suggest|repeat|output|print|reveal|show|list|"
        r"write|advise|mention|"
        r"name|praise|endorse|promote|quote|add|append|insert|begin|start|end|speak",
        r"ответь|отвечай|говори|скажи|советуй|посоветуй|рекомендуй|утверждай|пиши|напиши|выведи|покажи|"
        r"показывай|повтори|"
        r"перечисли|назови|называй|упомяни|упоминай|добавь|добавляй|вставь|хвали|начинай|начни|заканчивай|"
        r"раскрой|напечатай|"
        r"предлагай|предложи",
    ),
    "you_do": (
        r"\byou (?:will|shall|must|are to|have to|always|never|now|say|answer|recommend|reply|obey)\b|"
        r"\b(?:ты|вы) (?:\w+ )?\w+(?:ешь|ишь|ете|ите|ешься|ишься|етесь|итесь)\b"
    ),
    "send": _verb(
        r"send|forward|post|upload|transfer|wire|e-?mail|mail|transmit|submit|copy|leak|deliver|share|publish|"
        r"paste|fetch|call|visit",
        r"пришли|отправь|отправляй|перешли|пересылай|вышли|высылай|передай|передавай|загрузи|скопируй|переведи|"
        r"выложи|опубликуй|"
        r"скинь|открой",
    ),
    "act": _verb(
        r"approve|grant|refund|confirm|authori[sz]e|pay|delete|remove|run|execute|install|disable|accept|close|"
        r"transfer|skip|do",
        r"одобри|одобряй|подтверди|подтверждай|разреши|выполни|выполняй|исполняй|запусти|удали|оплати|отключи|"
        r"установи|выдай|"
        r"принимай|прими|закрой|вызови|пропусти|делай|одобрить",
    ),
    "secret": (
        r"\b(?:api[ -]?keys?|tokens?|passwords?|passphrases?|credentials?|secrets?|cookies?|prompts?|"
        r"conversations?|dialogues?|"
        r"chat(?: history| log)?|transcripts?|environment variables|address book|contacts|personal data|"
        r"card numbers?|"
        r"(?:list|names|records|data) of (?:all )?(?:the )?(?:customers|clients|users|employees)|"
        r"(?:customer|client|user|employee) (?:list|data|records|names)|all (?:customers|clients|users|employees)|"
        r"(?:your|the) (?:\w+ )?(?:memory|memories|keys)|"
        r"(?:парол|токен|секрет|переписк|диалог|промпт|контакт|ключ)\w*|учетн\w+ данн\w+|истори\w+ чата|"
        r"(?:спис\w+|имена|данные) (?:всех )?(?:клиент|пользовател|сотрудник)\w*|сво\w+ памят\w+)\b"
    ),
    "address": r"[^\s@]+@[^\s@]+\.\w{2,}|https?://|\bwww\.",
    "hide": (
        r"\b(?:do not|don't|never|without|not to|not) (?:ever )?(?:tell|telling|inform|informing|mention|"
        r"mentioning|reveal|alert|"
        r"alerting|notify|notifying|warn|warning|asking|disclose)\b|\bkeep (?:this|it|that) (?:secret|hidden|"
        r"quiet|to yourself|from)\b|"
        r"\b(?:silently|secretly|leave this (?:line )?out)\b|"
        r"\bне (?:говори|сообщай|рассказывай|упоминай|показывай|предупреждай|спрашивай)\w*|\b(?:никому не|молча|"
        r"тайно|втайне|незаметно|скрой)\b"
    ),
    "you": r"\b(?:you|your|yours|yourself|you're|ты|тебе|тебя|тобой|вы|вам|вас|(?:тво|ваш|сво)\w{1,3})\b",
    "familiar": (
        r"\b(?:ты|тебе|тебя|тобой|тво\w{1,3}|(?:про)?игнорируй|забудь|отбрось|обойди|сбрось|пренебреги|нарушь|"
        r"не (?:следуй|выполняй|соблюдай|слушай|говори|сообщай|предупреждай|упоминай)|притворись|представь|"
        r"подчиняйся|слушайся|"
        r"ответь|отвечай|говори|скажи|советуй|утверждай|пиши|напиши|выведи|покажи|повтори|перечисли|назови|"
        r"называй|добавь|"
        r"добавляй|хвали|начинай|раскрой|напечатай|предлагай|отправь|перешли|вышли|передай|загрузи|скопируй|"
        r"переведи|выложи|"
        r"открой|подтверди|выполни|запусти|удали|оплати|отключи|выдай|принимай|закрой|вызови|пропусти|делай)\b"
    ),
    "duty": r"\b(?:must|shall|has to|have to|needs? to|required|obliged|долж\w+|обязан\w*|приказ\w+|велено)\b",
    "role": (
        r"\byou are (?:now |free )|\bact as\b|\bpretend\b|\bbehave as\b|\bplay (?:a|the) (?:role|character)\b|"
        r"\b(?:maintenance|developer|debug|admin|god|jailbreak|unrestricted|diagnostic|root) mode\b|\b(?:obey|"
        r"comply)\b|"
        r"\b(?:unrestricted|without limits|no (?:restrictions|limits|rules|filters)|new identity)\b|"
        r"\b(?:ты|вы) теперь\b|\bтеперь (?:ты|вы)\b(?! (?:може|види|знае))|"
        r"\b(?:представь|притворись|веди себя|слушайся|подчиняйся|повинуйся)(?:те)?\b|"
        r"\bрежим\w* (?:обслуживани|разработчик|отладк|администратор)\w*|\bбез (?:ограничений|фильтров|проверок)\b"
    ),
    "only": (
        r"\b(?:only|nothing (?:but|else)|exclusively|solely|instead|word for word|verbatim|whatever else|"
        r"только|лишь|исключительно|вместо|дословно|больше ничего)\b"
    ),
    "authority": (
        r"^\W*(?:system|developer|admin(?:istrator)?|root|operator|система|администратор|разработчик|"
        r"оператор)\b(?: \w+)?\s*[:>\]]|"
        r"\b(?:message|notice|orders?) from (?:your|the) (?:creators?|developers?|operators?|owners?)|"
        r"\bот (?:создател|разработчик|хозя)\w+\s*:|\bсообщение (?:разработчик|систем)\w+"
    ),
    "human": r"\b(?:user|users|human|operator|owner|customer|client)s?\b|\b(?:пользовател|оператор|хозя|клиент|"
    r"владел)\w+",
}
SIGNS = tuple(_PATTERNS)
"""Names of the signs, in order."""
_COMPILED = tuple((name, re.compile(pattern, re.MULTILINE)) for name, pattern in _PATTERNS.items())


def signs(sentence: str) -> frozenset[str]:
    """Those of `SIGNS` that a sentence shows.

    Args:
        sentence: Folded: lower case, `ё` as `е`, without look-alikes and invisible characters.
    """
    return frozenset(name for name, pattern in _COMPILED if pattern.search(sentence))


__all__ = ["SIGNS", "signs"]
