"""Untrusted text -> text that is safe on a terminal. Every command prints through this module.

It imports only the standard library, because every command loads it.
"""

from __future__ import annotations

import unicodedata
from typing import Final

LONGEST_TEXT: Final = 10_000


def printable(text: str) -> str:
    """Escape control characters, except tabs and newlines, and shorten the text to LONGEST_TEXT.

    Also escapes characters that change the writing direction, and lone surrogates, which UTF-8 can't encode.
    """
    if not text.isascii() or not text.replace("\n", "").replace("\t", "").isprintable():
        text = "".join(map(_shown, text))
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _shown(character: str) -> str:
    # C: control, format, surrogate, private, unassigned. Zl and Zp: separators of lines and paragraphs.
    category = unicodedata.category(character)
    if character in "\n\t" or (category[0] != "C" and category not in ("Zl", "Zp")):
        return character
    return character.encode("unicode_escape").decode("ascii")


def on_one_line(text: str) -> str:
    """As `printable`, with tabs and newlines replaced by spaces."""
    return printable(text).replace("\n", " ").replace("\t", " ")
