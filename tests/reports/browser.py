"""A real, headless browser for tests: it opens a file and hands back the document, a picture of it, or it on paper."""

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
_TALLEST = 16_000
"""Pixels that Chromium paints below one another."""
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: apt install chromium")


def _chromium(file: Path, *flags: str) -> str:
    """Open a file; what Chromium says of it."""
    return subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--allow-file-access-from-files", f"--user-data-dir={file.parent / 'profile'}"),
            *("--virtual-time-budget=5000", *flags, file.as_uri()),
        ],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    ).stdout


def dumped(file: Path, *flags: str) -> str:
    """The document of `file` after its scripts ran."""
    return _chromium(file, "--window-size=1400,1000", *flags, "--dump-dom")


def printed(file: Path) -> bytes:
    """`file` on paper, as PDF."""
    pdf = file.with_suffix(".pdf")
    _chromium(file, "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
    return pdf.read_bytes()


def photographed(page: str, folder: Path, png: Path, width: int, *flags: str) -> int:
    """Save what a whole page looks like in a window of this width; returns its height."""
    say = "<script>document.body.dataset.answer = document.documentElement.scrollHeight</script>"
    silent = re.sub(r"<meta http-equiv[^>]*>", "", page, count=1)
    height = min(framed(silent.replace("</body>", f"{say}</body>"), folder, width), _TALLEST)
    (folder / "page.html").write_text(page, encoding="utf-8")
    # A frame takes its colour scheme from the page around it.
    look = "<style>:root { color-scheme: light dark } body { margin: 0 } iframe { border: 0; display: block }</style>"
    frame = f"<iframe src='page.html' width='{width}' height='{height}' scrolling='no'></iframe>"
    (folder / "frame.html").write_text(f"<!doctype html>{look}<body>{frame}</body>", encoding="utf-8")
    png.parent.mkdir(parents=True, exist_ok=True)
    size = f"--window-size={width},{height}"
    _chromium(folder / "frame.html", size, "--hide-scrollbars", *flags, f"--screenshot={png}")
    return height


def framed(page: str, folder: Path, width: int) -> Any:
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


def answer(document: str) -> Any:
    """What its body's `data-answer` holds."""
    found = re.search(r'<body data-answer="([^"]*)"', document)
    assert found, f"the page did not answer: {document[:2000]}"
    return json.loads(html.unescape(found.group(1)))
