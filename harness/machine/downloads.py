"""How large a download is, to say before it starts."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import requests

LARGE_BYTES = 1 << 30
ANSWER_SECONDS = 5.0


class Download(NamedTuple):
    """Files that would be downloaded."""

    files: int
    size_bytes: int
    """Sum of the sizes that are known. A file on this machine counts as 0."""

    @property
    def hint(self) -> str:
        """How to get less, if it is much."""
        return "" if self.size_bytes < LARGE_BYTES else "UV_TORCH_BACKEND=cpu gets PyTorch without CUDA."


def in_lock(resolved: Path) -> Download:
    """The files in a `pylock.toml`."""
    packages = tomllib.loads(resolved.read_text(encoding="utf-8")).get("packages", [])
    files = [(package.get("wheels") or [package.get("sdist") or {}])[0] for package in packages]
    return Download(len(files), sum(int(file.get("size", 0)) for file in files))


def at(addresses: Iterable[str]) -> Download:
    """The files at these addresses, whose servers are asked for the sizes."""
    sizes = [_size_bytes(address) for address in addresses]
    return Download(len(sizes), sum(sizes))


def _size_bytes(address: str) -> int:
    """Size of the file; 0 if its server does not tell."""
    with contextlib.suppress(requests.RequestException, ValueError):
        answer = requests.head(address, allow_redirects=True, timeout=ANSWER_SECONDS)
        if answer.ok:
            return max(0, int(answer.headers.get("Content-Length", 0)))
    return 0
