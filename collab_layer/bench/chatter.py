"""What people note all day that nobody needs twice: the noise of the trigger benchmark.

In:   a random generator, a language.
Out:  one sentence; who, what, how and where are drawn one by one, so that whole phrases hardly recur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Topic:
    """The words of one subject: what was done, to what, and how."""

    done: Sequence[str]
    what: Sequence[str]
    how: Sequence[str]


def words(text: str) -> tuple[str, ...]:
    """What stands between the bars."""
    return tuple(text.split("|"))


def _topic(done: str, what: str, how: str) -> Topic:
    return Topic(words(done), words(what), words(how))


_ENGLISH = (
    _topic(
        "baked|roasted|burned|reheated|served|froze|tasted|peeled|marinated|stirred",
        "lasagne|pumpkin soup|rye bread|lentils|trout|omelette|dumplings|rhubarb cake|goulash|risotto|pancakes|hummus",
        "with thyme|with too much garlic|without butter|in a cast-iron pan|from grandmother's notebook|for twelve"
        " guests|on low heat|with smoked paprika|over an open fire|with lemon zest|in under an hour|for the fair",
    ),
    _topic(
        "planted|watered|pruned|weeded|harvested|moved|photographed|covered|fed|divided",
        "tomatoes|raspberries|the old pear tree|tulip bulbs|basil pots|courgettes|a hedge of yew|ferns|clematis"
        "|potatoes|lavender|strawberry runners",
        "before the frost|behind the shed|along the fence|in heavy clay|with compost tea|under a fleece|by hand|in the"
        " drizzle|with a borrowed spade|for the butterflies|near the pond|in raised beds",
    ),
    _topic(
        "watched|recorded|missed|discussed|cheered at|refereed|rehearsed|filmed|lost|won",
        "the handball derby|a chess simul|the cycling stage|the relay final|a table-tennis open|the rowing heats"
        "|a curling match|the marathon|an archery round|the school hockey game|a judo bout|the sailing regatta",
        "in extra time|from the cheap seats|on a tiny phone|with hoarse voices|against the favourites|after a false"
        " start|in pouring rain|with a borrowed scarf|by two points|without a goalkeeper|at dawn|under floodlights",
    ),
    _topic(
        "booked|cancelled|boarded|described|postponed|mapped|shared|enjoyed|survived|compared",
        "a ferry to Bergen|the sleeper train|a hostel in Porto|the cable car|a walking tour|the airport shuttle"
        "|a canoe trip|the museum pass|a campsite in the Alps|the lighthouse visit|a night bus|the island loop",
        "with two rucksacks|at half price|through a dull agency|in thick fog|with seasick nephews|by mistake|despite"
        " the strike|on points|for the solstice|without a visa|in the wrong month|with a paper map",
    ),
    _topic(
        "reviewed|drafted|approved|rejected|circulated|archived|translated|signed|shortened|presented",
        "the hiring plan|a travel policy|the supplier contract|quarterly targets|an offer letter|the parking rules"
        "|a press note|the training budget|an audit reply|the seating chart|a cleaning tender|the holiday roster",
        "over cold coffee|with legal|in the corner office|for the works council|after long debate|on a single page"
        "|with track changes|before the board|in three languages|for the auditors|at the stand-up|by circular",
    ),
    _topic(
        "refactored|profiled|documented|deleted|benchmarked|renamed|ported|merged|vendored|annotated",
        "the date parser|a flaky integration suite|the thumbnail resizer|an ancient shell script|the retry helper"
        "|a GraphQL resolver|the feature flags|a linter plugin|the audit log|a colour picker|the CSV reader|tree view",
        "in Rust|for the release branch|with property tests|on a plane|over pair programming|behind a toggle|for"
        " readability|without tests|with fewer allocations|during the hackathon|after a heated review|for Windows",
    ),
    _topic(
        "read|borrowed|recommended|abandoned|reread|reviewed|gave away|annotated|ordered|quoted",
        "a biography of Curie|the whaling novel|an essay on silence|three sonnets|a noir comic|a history of salt"
        "|the glacier memoir|a manual of knots|fairy tales|a book on bees|the courtroom thriller|a field guide",
        "in one sitting|on the tram|for the book club|with pencil notes|aloud to children|in large print|during jury"
        " duty|by candlelight|in the original|with mixed feelings|from the library van|before the film came out",
    ),
    _topic(
        "repaired|oiled|sold|painted|inflated|dismantled|weighed|insured|cleaned|rode",
        "the cargo bike|a squeaky gate|the lawnmower|a rowing boat|an attic ladder|the garage door|a sewing machine"
        "|the caravan|a leaking gutter|the wood stove|a child's scooter|the cellar pump",
        "with duct tape|after the storm|for a neighbour|using spare parts|against all advice|with linseed oil|in the"
        " yard|for pocket money|on blocks|before winter|with a rusty wrench|without instructions",
    ),
    _topic(
        "asked about|ordered|returned|praised|exchanged|reserved|unwrapped|compared|forgot|gift-wrapped",
        "a walnut desk|hiking boots|the espresso grinder|wool blankets|a standing lamp|noise-cancelling headphones"
        "|a bread knife|the rain jacket|picture frames|a violin case|bath towels|an umbrella stand",
        "in the sale|by courier|with a voucher|in the wrong size|for a wedding|at the counter|with free engraving"
        "|without a receipt|for the guest room|in dark green|on instalments|from the flea market",
    ),
    _topic(
        "visited|treated|vaccinated|walked|brushed|adopted|weighed|fed|sketched|calmed",
        "an elderly beagle|two guinea pigs|the neighbour's parrot|a limping heron|barn cats|a shy whippet|the class"
        " hamster|a foal|stick insects|a rescued hedgehog|the terrier|honey bees",
        "at the clinic|with liver treats|before breakfast|in a cardboard box|for the shelter|with great patience"
        "|during thunder|on a long lead|after surgery|with a soft brush|by the canal|for the first time",
    ),
)
_RUSSIAN = (
    _topic(
        "испекли|пожарили|пересолили|разогрели|заморозили|попробовали|почистили|замариновали|сварили|разлили",
        "пирог с капустой|тыквенный суп|ржаной хлеб|чечевицу|форель|омлет|пельмени|ватрушки|гуляш|плов|блины|варенье",
        "с чесноком|по бабушкиной тетради|на медленном огне|для двенадцати гостей|в чугунной сковороде|с укропом|без"
        " масла|к ярмарке|за полчаса|с лимонной цедрой|на костре|впервые за год",
    ),
    _topic(
        "посадили|полили|обрезали|пропололи|собрали|пересадили|укрыли|подкормили|выкопали|сфотографировали",
        "помидоры|малину|старую грушу|луковицы тюльпанов|кабачки|папоротник|картошку|лаванду|клубнику|смородину"
        "|георгины|саженцы вишни",
        "до заморозков|за сараем|вдоль забора|в теплице|под дождём|чужой лопатой|у пруда|на грядках|для пчёл|под"
        " плёнкой|всей семьёй|в тяжёлой глине",
    ),
    _topic(
        "посмотрели|записали|пропустили|обсудили|сняли|проиграли|выиграли|судили|отменили|перенесли",
        "хоккейное дерби|шахматный турнир|велогонку|финал эстафеты|гребную регату|матч по кёрлингу|марафон|бой дзюдо"
        "|лыжный спринт|школьный волейбол|теннисный сет|заплыв",
        "в овертайме|с дешёвых мест|на крошечном экране|под проливным дождём|с разницей в два очка|без вратаря|на"
        " рассвете|при прожекторах|после фальстарта|вопреки прогнозам|с дудками|в пустом зале",
    ),
    _topic(
        "забронировали|отменили|перенесли|описали|сравнили|продлили|проспали|похвалили|оплатили|искали",
        "паром в Берген|ночной поезд|хостел в Казани|канатную дорогу|экскурсию по крышам|автобус до аэропорта|сплав"
        " на байдарках|музейную карту|кемпинг в горах|поездку на маяк|каюту|дом на озере",
        "с двумя рюкзаками|за полцены|через скучное агентство|в густом тумане|по ошибке|несмотря на забастовку|за"
        " баллы|на солнцестояние|без визы|с бумажной картой|вместе с племянниками|в последний момент",
    ),
    _topic(
        "согласовали|набросали|утвердили|отклонили|разослали|перевели|подписали|сократили|показали|сдали в архив",
        "план найма|правила командировок|договор с поставщиком|цели квартала|письмо кандидату|схему рассадки|смету"
        " обучения|ответ аудиторам|график отпусков|пресс-релиз|тендер на уборку|устав клуба",
        "за остывшим кофе|вместе с юристами|для профкома|после долгих споров|на одной странице|перед советом|на трёх"
        " языках|на летучке|циркуляром|с правками|в углу столовой|до обеда",
    ),
    _topic(
        "переписали|измерили|описали|удалили|переименовали|перенесли|слили|разобрали|упростили|покрыли тестами",
        "разбор дат|шаткие проверки|нарезку картинок|древний скрипт|повтор запросов|флаги функций|журнал аудита|выбор"
        " цвета|чтение таблиц|дерево папок|планировщик задач|форму отзыва",
        "на Расте|для ветки выпуска|в самолёте|в паре|за переключателем|без лишних копий|на хакатоне|после жаркого"
        " ревью|ради читаемости|под Виндоус|с нуля|в пятницу вечером",
    ),
    _topic(
        "прочли|одолжили|посоветовали|бросили|перечитали|подарили|заказали|цитировали|обсуждали|переплели",
        "биографию Кюри|роман о китобоях|эссе о тишине|три сонета|комикс|историю соли|мемуары полярника|сказки|книгу"
        " о пчёлах|судебный детектив|определитель птиц|словарь рифм",
        "за один вечер|в трамвае|для книжного клуба|с карандашом|детям вслух|при свечах|в подлиннике|с двойственным"
        " чувством|до выхода фильма|из передвижной библиотеки|на даче|в очереди",
    ),
    _topic(
        "починили|смазали|продали|покрасили|накачали|взвесили|отмыли|застраховали|утеплили|собрали",
        "грузовой велосипед|скрипучую калитку|газонокосилку|лодку|чердачную лестницу|ворота гаража|швейную машинку"
        "|дровяную печь|водосток|самокат|насос в подвале|скворечник",
        "изолентой|после бури|для соседей|из запчастей|вопреки советам|льняным маслом|во дворе|перед зимой|ржавым"
        " ключом|без инструкции|на спор|за выходные",
    ),
)
_TOPICS: Mapping[str, Sequence[Topic]] = {"en": _ENGLISH, "ru": _RUSSIAN}
_WHO: Mapping[str, Sequence[str]] = {
    "en": words(
        "Maria|Tom|The twins|Aunt Vera|Our intern|Jonas|Priya|The new tenant|Colin|Two colleagues|Grandpa|Sofia"
        "|The night shift|Yusuf|My sister|Half the team|Ingrid|The caretaker|Old friends|Nobody but Ben"
    ),
    "ru": words(
        "Соседи|Коллеги|Близнецы|Родители|Стажёры|Друзья|Ребята с работы|Ночная смена|Новые жильцы|Старики"
        "|Племянники|Двое из отдела|Сёстры|Туристы|Однокурсники|Внуки|Тренеры|Волонтёры"
    ),
}
_WHEN: Mapping[str, Sequence[str]] = {
    "en": words(
        "on Monday|last night|this morning|at noon|over the weekend|in March|yesterday|on the 14th|twice this week"
        "|after lunch|early on Sunday|around seven|in the holidays|on payday|the other day"
    ),
    "ru": words(
        "в понедельник|вчера вечером|утром|в полдень|за выходные|в марте|на днях|14 числа|дважды за неделю"
        "|после обеда|рано в воскресенье|около семи|на каникулах|в отпуске"
    ),
}
_FRAMES: Mapping[str, Sequence[str]] = {
    "en": (
        "{who} {done} {what} {how} {when}.",
        "{when}: {who} {done} {what}, {how}.",
        "{what} {how}, {done} by {who}.",
        "{who} says they {done} {what} {how}.",
    ),
    "ru": (
        "{who} {done} {what} {how} {when}.",
        "{when}: {who} {done} {what}, {how}.",
        "{who} говорят, что {done} {what} {how}.",
        "{how} {who} {done} {what}.",
    ),
}


def small_talk(rng: np.random.Generator, language: str) -> str:
    """One sentence of noise.

    Args:
        rng: Where chance comes from.
        language: `en` or `ru`.
    """
    topic = one(rng, _TOPICS[language])
    parts = {"done": one(rng, topic.done), "what": one(rng, topic.what), "how": one(rng, topic.how)}
    parts |= {"who": one(rng, _WHO[language]), "when": one(rng, _WHEN[language])}
    text = one(rng, _FRAMES[language]).format(**parts)
    return text[0].upper() + text[1:]


def one(rng: np.random.Generator, among: Sequence[T]) -> T:
    """One of them, each as likely."""
    return among[int(rng.integers(len(among)))]


__all__ = ["one", "small_talk", "words"]
