"""Anybody's text -> text that a terminal may show. Standard library only: every command prints through it."""

from __future__ import annotations

import unicodedata
from typing import Final

LONGEST_TEXT: Final = 10_000


def printable(text: str) -> str:
    """The text as a terminal may show it: control characters are escaped, except tabs and newlines.

    Characters that change the writing direction and lone surrogates, which no file can hold, are escaped too.
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
    """The same with spaces for tabs and ends of lines."""
    return printable(text).replace("\n", " ").replace("\t", " ")
