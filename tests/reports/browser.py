"""A real, headless browser for tests: it opens a file and hands back the document as its scripts left it."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: apt install chromium")


def dumped(file: Path, *flags: str) -> str:
    """The document of `file` after its scripts ran."""
    return subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--allow-file-access-from-files", f"--user-data-dir={file.parent / 'profile'}"),
            *("--window-size=1400,1000", "--virtual-time-budget=5000", *flags, "--dump-dom", file.as_uri()),
        ],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    ).stdout


def framed(page: str, folder: Path, width: int) -> dict:
    """What a page answers in `document.body.dataset.answer`, as JSON, in a window of this width."""
    # Headless windows are at least 500 px wide: a frame of the wanted width is what a phone's window is.
    (folder / "page.html").write_text(page, encoding="utf-8")
    # The page may answer some time after it is loaded.
    take = "const found = this.contentDocument.body.dataset.answer; if (found) document.body.dataset.answer = found;"
    frame = (
        f"<iframe src='page.html' width='{width}' height='900' onload='setInterval(() => {{ {take} }}, 20)'></iframe>"
    )
    (folder / "frame.html").write_text(f"<!doctype html><body>{frame}</body>", encoding="utf-8")
    return answer(dumped(folder / "frame.html"))


def answer(document: str) -> dict:
    """What its body's `data-answer` holds."""
    found = re.search(r'<body data-answer="([^"]*)"', document)
    assert found, f"the page did not answer: {document[:2000]}"
    return json.loads(html.unescape(found.group(1)))
