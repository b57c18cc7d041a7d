"""Text -> escaped Markdown, and the template environment that escapes every value."""

from __future__ import annotations

import re

import jinja2

_ACTIVE = re.compile(r"([\\`*_\[\]|~])")


def environment() -> jinja2.Environment:
    """Return the environment for Markdown templates, in which no text can become markup."""
    return jinja2.Environment(  # noqa: S701  # autoescape is for HTML; `finalize` does it for Markdown
        loader=jinja2.PackageLoader("zoomgrad.reports"),
        # Every `{{ }}` passes through here, so no template can forget to escape.
        finalize=lambda value: escape(str(value)),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def escape(text: str) -> str:
    """Escape text so that Markdown shows it verbatim, on one line: no tags, links, emphasis or cell borders."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ACTIVE.sub(r"\\\1", text)
