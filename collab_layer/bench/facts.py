"""The words of the facts that come up again and again, in two halves that have nothing in common.

Each thing, trouble and remedy has three wordings, with bars between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from collab_layer.bench.chatter import words

Half = Literal["tune", "test"]

THINGS: Mapping[tuple[Half, str], Sequence[str]] = {
    ("tune", "en"): (
        "the staging VPN|our VPN into staging|the tunnel to the staging network",
        "the invoice export|exporting invoices|the nightly dump of invoices",
        "the badge printer|reception's badge printer|the printer for visitor badges",
        "customer search|the search box for customers|searching for customers",
        "the orders consumer in Kafka|our Kafka consumer for orders|the Kafka reader of the orders topic",
        "Outlook calendar sync|the sync of Outlook calendars|syncing calendars with Outlook",
    ),
    ("test", "en"): (
        "the meeting-room tablet|the tablet outside the meeting room|the room booking tablet",
        "the payroll import|importing payroll files|the monthly payroll upload",
        "push notifications on Android|Android push messages|our Android notifications",
        "the warehouse scanner|the barcode scanner in the warehouse|the handheld scanner of the warehouse",
        "the captcha at login|our login captcha|the captcha on the login page",
        "the snapshot of the test database|our test database snapshot|restoring the test database snapshot",
    ),
    ("tune", "ru"): (
        "тестовый VPN|наш VPN в тестовый контур|туннель в тестовый контур",
        "выгрузка счетов|ночная выгрузка счетов|наша выгрузка счетов в бухгалтерию",
        "принтер пропусков|принтер для пропусков на входе|печать пропусков на принтере",
        "поиск клиентов|строка поиска клиентов|наш поиск по клиентам",
        "обработчик заказов в Kafka|наш обработчик очереди заказов Kafka|чтение заказов из Kafka",
        "сверка календарей Outlook|синхронизация календаря Outlook|календарь Outlook",
    ),
    ("test", "ru"): (
        "планшет у переговорной|планшет брони переговорной|экран брони у переговорной",
        "загрузка зарплат|ежемесячная загрузка зарплатных файлов|импорт файлов зарплаты",
        "уведомления на Android|наши уведомления в Android|пуши на Android",
        "складской сканер|сканер штрихкодов на складе|ручной сканер склада",
        "капча на входе|наша капча при входе|проверка капчи на странице входа",
        "снимок тестовой базы|наш снимок тестовой базы данных|восстановление снимка тестовой базы",
    ),
}
TROUBLES: Mapping[tuple[Half, str], Sequence[str]] = {
    ("tune", "en"): (
        "stops after half an hour|drops out after about thirty minutes|is gone half an hour later",
        "shows stale numbers|serves yesterday's numbers|is a day behind with its numbers",
        "runs out of memory|gets killed for memory|eats all the memory",
        "chokes on accented letters|garbles accents|breaks names with accents",
    ),
    ("test", "en"): (
        "freezes at ninety percent|hangs near the end, at 90 percent|is stuck at ninety percent",
        "fails after a password change|refuses to work once a password was changed|breaks when the password changes",
        "skips the last row|leaves out the last row|forgets the final row",
        "is painfully slow on Mondays|crawls every Monday|takes ages on a Monday",
    ),
    ("tune", "ru"): (
        "обрывается через полчаса|пропадает примерно через полчаса|замолкает спустя полчаса",
        "показывает старые цифры|отдаёт вчерашние цифры|отстаёт на день по цифрам",
        "съедает всю память|падает из-за памяти|вылетает по нехватке памяти",
        "портит букву ё|ломается на букве ё|заменяет букву ё мусором",
    ),
    ("test", "ru"): (
        "зависает на девяноста процентах|встаёт на 90 процентах|застревает на девяноста процентах",
        "ломается после смены пароля|перестаёт работать, если сменить пароль|отказывает при смене пароля",
        "пропускает последнюю строку|теряет последнюю строку|забывает последнюю строку",
        "тормозит по понедельникам|еле ползает каждый понедельник|страшно медленный в понедельник",
    ),
}
REMEDIES: Mapping[tuple[Half, str], Sequence[str]] = {
    ("tune", "en"): (
        "renew the client certificate|get a new client certificate|have the client certificate reissued",
        "clear the local cache|wipe the cache folder|delete what is cached",
        "lower the batch size to 200|use batches of 200|cut the batch down to 200",
        "turn the proxy off|switch off the proxy|go around the proxy",
    ),
    ("test", "en"): (
        "reinstall the driver from the intranet|take the driver from the intranet|put the intranet driver on it",
        "log out of every session|end all open sessions|close all sessions first",
        "add an empty line at the end|end the file with an empty line|append an empty line",
        "move the job to 6 am|start the job at 6 am|run its job at 6 in the morning",
    ),
    ("tune", "ru"): (
        "обновить сертификат клиента|выпустить новый сертификат клиента|заменить клиентский сертификат",
        "очистить кэш|удалить папку кэша|стереть весь кэш",
        "уменьшить пачку до 200|слать пачками по 200|взять размер пачки 200",
        "отключить прокси|ходить мимо прокси|выключить прокси",
    ),
    ("test", "ru"): (
        "переставить драйвер с портала|взять драйвер с портала|поставить драйвер, что на портале",
        "завершить все сеансы|закрыть все открытые сеансы|выйти из всех сеансов",
        "добавить пустую строку в конец|закончить файл пустой строкой|дописать пустую строку",
        "перенести задание на 6 утра|запускать задание в 6 утра|сдвинуть задание к 6 утра",
    ),
}
FRAMES: Mapping[str, Sequence[str]] = {
    "en": (
        "{thing} {trouble}; {remedy}.",
        "When {thing} {trouble}, {remedy}.",
        "Again {thing} {trouble}. What helped: {remedy}.",
        "If {thing} {trouble}, it is enough to {remedy}.",
        "Lost an hour because {thing} {trouble}, until {who} said to {remedy}.",
        "{who} found out: {thing} {trouble}, so {remedy}.",
        "For the record, {thing} {trouble} unless you {remedy}.",
    ),
    "ru": (
        "{thing} {trouble}; нужно {remedy}.",
        "Когда {thing} {trouble}, надо {remedy}.",
        "Опять {thing} {trouble}. Помогло: {remedy}.",
        "Если {thing} {trouble}, достаточно {remedy}.",
        "Потеряли час: {thing} {trouble}, пока {who} не подсказали {remedy}.",
        "{who} выяснили: {thing} {trouble}, лечится так: {remedy}.",
        "На заметку: {thing} {trouble}, советуем {remedy}.",
    ),
}
MISSES: Mapping[str, Sequence[str]] = {
    "en": (
        "{who} asked who looks after {thing} now.",
        "{thing} got a new owner, {who} told us {when}.",
        "There is a poll about the name of {thing}.",
        "{who} wants a demo of {thing} {when}.",
        "A slide about {thing} is missing in the deck of {who}.",
        "{thing} was praised by {who} {when}.",
    ),
    "ru": (
        "{who} спросили, кто теперь отвечает за {thing}.",
        "{thing}: сменили ответственного, {who} сообщили {when}.",
        "Идёт опрос, как назвать {thing}.",
        "{who} хотят показ {when}: {thing}.",
        "В презентации забыли слайд, {thing}; его ждут {who}.",
        "{who} похвалили {when}: {thing}.",
    ),
}
WHO = {"en": words("Maria|Tom|Priya|Jonas|support|the intern"), "ru": words("коллеги|стажёры|админы|соседний отдел")}
WHEN = {"en": words("on Monday|last night|this morning|in March"), "ru": words("вчера|утром|в марте|на днях")}
