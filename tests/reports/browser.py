"""Headless Chromium for tests: opens a page and returns what a script answers."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DARK = "--blink-settings=preferredColorScheme=0"
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: apt install chromium")


def answers(page: str, folder: Path, act: str, width: int = 1280, *flags: str) -> Any:
    """Let a script act on the page in a window of this width, and return its result, which may be a promise.

    The script may run because it replaces the page's policy. It finds the page's errors in `problems`.
    """
    probe = '<script>window.problems = []; addEventListener("error", event => problems.push(event.message));</script>'
    page = re.sub(r"<meta http-equiv[^>]*>", lambda _: probe, page, count=1)
    ask = f"(async () => {{ {act} }})().then(found => document.body.dataset.answer = JSON.stringify(found))"
    (folder / "page.html").write_text(page.replace("</body>", f"<script>{ask}</script></body>"), encoding="utf-8")
    # Headless windows are at least 500 px wide, so a frame of the wanted width replaces a phone's window.
    take = "const found = this.contentDocument.body.dataset.answer; if (found) document.body.dataset.answer = found;"
    look = "<style>:root { color-scheme: light dark }</style>"
    frame = (
        f"<iframe src='page.html' width='{width}' height='900' onload='setInterval(() => {{ {take} }}, 20)'></iframe>"
    )
    (folder / "frame.html").write_text(f"<!doctype html>{look}<body>{frame}</body>", encoding="utf-8")
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--allow-file-access-from-files", f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000"),
        *("--window-size=1400,1000", *flags, "--dump-dom", (folder / "frame.html").as_uri()),
    ]
    document = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=True).stdout
    found = re.search(r'<body data-answer="([^"]*)"', document)
    assert found, f"the page did not answer: {document[:2000]}"
    return json.loads(html.unescape(found.group(1)))
