"""What the contract's checks put into a store: plain notes, odd texts, odd and look-alike ids."""

from __future__ import annotations

PARSER = "The parser fails on nested quotes"
BREAD = "Bread dough needs salt"
ODD_TEXTS = (
    "Съешь ещё этих мягких французских булок",
    "emoji 👩‍🔬 and a combining e\u0301",
    "two\nlines\tand a tab",
    """quotes " ' ` and {"json": ["x"]}; DROP TABLE memories; -- %s {} <b>""",
)
ODD_NAMES = ("Анна-Ёлка", "o'brien", 'say"hi"', "a:b:c", "a.b@c+d|e", "100%", "x_y", "{id}", "кот🐈", "n" * 200)
LOOKALIKES = (("user", "ann"), ("user", "anna"), ("user", "an"), ("user", "Ann"), ("user", "an_"), ("agent", "ann"))
UNKNOWN_IDS = ("unknown", "", "*", "a/b", "' OR 1=1 --", "00000000-0000-0000-0000-000000000000", "нет", "9" * 40)
