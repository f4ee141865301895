"""How many tokens a text is, without a tokenizer."""

from __future__ import annotations


def estimate_tokens(text: str) -> int:
    """A quarter of the ASCII characters and half of the rest, each rounded up.

    Source: four characters a token is the usual rule for English; Cyrillic and other
    scripts take about two characters a token in current vocabularies.
    """
    if text.isascii():
        return -(-len(text) // 4)
    ascii_count = len(text.encode("ascii", "ignore"))
    return -(-ascii_count // 4) + -(-(len(text) - ascii_count) // 2)


__all__ = ["estimate_tokens"]
