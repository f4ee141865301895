"""Latin words spelled with letters of other alphabets, as Latin words.

In:   any text.
Out:  the same with Cyrillic and Greek look-alikes made Latin where the word or the text is Latin.
Pure. A Russian text keeps its letters: only its words that mix alphabets change.
"""

from __future__ import annotations

import re

from collab_layer.stages.lessons import mostly_cyrillic

_TABLE = str.maketrans(
    "аеорсухіѕјԁһӏкмтвнгАЕОРСУХІЅВНКМТαβεηικνορτυχγωΑΒΕΗΙΚΜΝΟΡΤΥΧΖ",
    "aeopcyxisjdhlkmtbhrAEOPCYXISBHKMTabenikvoptuxywABEHIKMNOPTYXZ",
)
_LATIN = re.compile("[A-Za-z]")
_WORD = re.compile(r"[^\W_]+")


def latin(text: str) -> str:
    """The text with look-alikes made Latin."""
    if text.isascii():
        return text
    if not mostly_cyrillic(text):
        return text.translate(_TABLE)
    return _WORD.sub(lambda word: _mixed(word.group()), text)


def _mixed(word: str) -> str:
    return word.translate(_TABLE) if _LATIN.search(word) else word


__all__ = ["latin"]
