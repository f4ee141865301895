"""The script from the README at size: 200 owners on a real Mem0, English and Russian.

Before a grant the wrapped object's output is the bare one's, byte for byte; after one
`records` grant an owner's search brings a neighbour's relevant lesson with its evidence.
"""

from __future__ import annotations

import json
import os
import tempfile

import pytest

# Read when Mem0 is imported: none of its telemetry, none of its files in the home folder.
os.environ["MEM0_TELEMETRY"] = "False"
os.environ.setdefault("MEM0_DIR", tempfile.mkdtemp(prefix="mem0-"))

pytest.importorskip("mem0")
pytest.importorskip("chromadb")

from collab_layer_mem0 import backend_of, collaborative
from collab_layer_mem0.testing import open_memory

from collab_layer import CollabLayer

OWNERS = 200
TOPICS = [
    ("invoice export", "switch the locale to UTC", "экспорт счетов", "переключите часовой пояс на UTC"),
    ("password reset mail", "check the spam quarantine", "письмо для сброса пароля", "проверьте карантин спама"),
    ("calendar sync", "sign out of the old device", "синхронизация календаря", "выйдите на старом устройстве"),
    ("go module conflict", "pin the indirect version", "конфликт модулей go", "закрепите косвенную версию"),
    ("printer queue", "clear the stuck job", "очередь печати", "очистите зависшее задание"),
]
LESSON = "Sign-in loops after the upgrade: clear the old cookie domain."
LESSON_RU = "Вход зацикливается после обновления: удалите старый домен cookie."


def note(number: int) -> str:
    english, fix, russian, cure = TOPICS[number % len(TOPICS)]
    if number % 2:
        return f"{russian.capitalize()} в отделе {number} не работала: {cure}."
    return f"The {english} failed for desk {number}: {fix}."


def question(number: int) -> str:
    english, _, russian, _ = TOPICS[number % len(TOPICS)]
    return f"не работает {russian}" if number % 2 else f"why does the {english} fail"


def answers(memory, numbers) -> list[str]:
    found = [memory.search(question(n), filters={"user_id": f"user-{n}"}) for n in numbers]
    return [json.dumps(one, ensure_ascii=False) for one in found]


def derived_in(answer) -> list[dict]:
    return [one for one in answer["results"] if one["id"].startswith("collab:")]


@pytest.fixture
def memory(tmp_path):
    opened = open_memory(tmp_path / "mem0", "chroma")
    yield opened
    opened.close()


def test_two_hundred_owners_share_nothing_until_one_of_them_does(memory, tmp_path):
    half = OWNERS // 2
    for number in range(half):  # there before the layer was
        memory.add(note(number), user_id=f"user-{number}", infer=False)
    with CollabLayer.open(str(tmp_path / "collab.db")) as layer:
        wrapped = collaborative(memory, layer, timeout_s=20)
        assert layer.index(backend_of(wrapped)) == half
        for number in range(half, OWNERS):
            wrapped.add(note(number), user_id=f"user-{number}", infer=False)
        wrapped.add(LESSON, user_id="user-1", infer=False, metadata={"collab_links": "topic:sign-in"})
        wrapped.add(LESSON_RU, user_id="user-1", infer=False)
        layer.drain()
        assert layer.health().counts["interactions"] == OWNERS + 2

        plain = answers(memory, range(OWNERS))
        assert answers(wrapped, range(OWNERS)) == plain

        grant = layer.grant("user:user-1", to="tenant", level="records")
        layer.drain()
        for reader, asked, wanted in (
            ("user-150", "sign-in loops after the upgrade", "cookie domain"),
            ("user-7", "вход зацикливается после обновления", "старый домен"),
            ("newcomer", "sign-in loops after the upgrade", "cookie domain"),
        ):
            answer = wrapped.search(asked, filters={"user_id": reader})
            own = memory.search(asked, filters={"user_id": reader})
            assert json.dumps(answer["results"][: len(own["results"])]) == json.dumps(own["results"])
            extra = derived_in(answer)
            assert answer["results"][len(own["results"]) :] == extra
            assert 1 <= len(extra) <= 3
            assert wanted in extra[0]["memory"]
            evidence = json.loads(extra[0]["metadata"]["collab_evidence"])
            assert {one["owner"] for one in evidence} == {"user:user-1"}
            assert layer.explain(extra[0]["id"].removeprefix("collab:")).sources

        layer.revoke(grant.id)
        assert answers(wrapped, range(0, OWNERS, 20)) == [plain[n] for n in range(0, OWNERS, 20)]
