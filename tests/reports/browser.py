"""Headless Chromium for tests: opens a file and returns the document, a screenshot, or a PDF."""

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
"""Largest height in pixels that Chromium paints."""
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: apt install chromium")


def _chromium(file: Path, *flags: str) -> str:
    """Open a file in Chromium and return what it prints."""
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
    """Return the document of `file` after its scripts ran."""
    return _chromium(file, "--window-size=1400,1000", *flags, "--dump-dom")


def printed(file: Path) -> bytes:
    """Print `file` and return the PDF."""
    pdf = file.with_suffix(".pdf")
    _chromium(file, "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
    return pdf.read_bytes()


def photographed(page: str, folder: Path, png: Path, width: int, *flags: str) -> int:
    """Save a screenshot of the whole page in a window of this width, and return its height."""
    say = "<script>document.body.dataset.answer = document.documentElement.scrollHeight</script>"
    silent = re.sub(r"<meta http-equiv[^>]*>", "", page, count=1)
    height = min(framed(silent.replace("</body>", f"{say}</body>"), folder, width), _TALLEST)
    (folder / "page.html").write_text(page, encoding="utf-8")
    # A frame inherits its colour scheme from the page around it.
    look = "<style>:root { color-scheme: light dark } body { margin: 0 } iframe { border: 0; display: block }</style>"
    frame = f"<iframe src='page.html' width='{width}' height='{height}' scrolling='no'></iframe>"
    (folder / "frame.html").write_text(f"<!doctype html>{look}<body>{frame}</body>", encoding="utf-8")
    png.parent.mkdir(parents=True, exist_ok=True)
    size = f"--window-size={width},{height}"
    _chromium(folder / "frame.html", size, "--hide-scrollbars", *flags, f"--screenshot={png}")
    return height


def framed(page: str, folder: Path, width: int) -> Any:
    """Return the JSON that a page puts in `document.body.dataset.answer`, in a window of this width."""
    # Headless windows are at least 500 px wide, so a frame of the wanted width replaces a phone's window.
    (folder / "page.html").write_text(page, encoding="utf-8")
    # The page may answer some time after it has loaded.
    take = "const found = this.contentDocument.body.dataset.answer; if (found) document.body.dataset.answer = found;"
    frame = (
        f"<iframe src='page.html' width='{width}' height='900' onload='setInterval(() => {{ {take} }}, 20)'></iframe>"
    )
    (folder / "frame.html").write_text(f"<!doctype html><body>{frame}</body>", encoding="utf-8")
    return answer(dumped(folder / "frame.html"))


def answer(document: str) -> Any:
    """Return the JSON in the `data-answer` of the document's body."""
    found = re.search(r'<body data-answer="([^"]*)"', document)
    assert found, f"the page did not answer: {document[:2000]}"
    return json.loads(html.unescape(found.group(1)))
