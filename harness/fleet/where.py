"""The text after `--on` -> the place of a fleet, refused if it would let strangers in. Imports nothing of dask.

dask runs whatever it is sent: whoever reaches a scheduler or a worker without TLS runs code as its user. So plain TCP
stays on this machine. Certificates are for dask's own configuration.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from zoomgrad.results.files import Unreadable

FORMS = "local:2, tls://scheduler:8786 or tcp://127.0.0.1:8786"


@dataclass(frozen=True)
class Where:
    """Where a fleet is."""

    kind: Literal["local", "tcp", "tls"]
    address: str = ""
    """A scheduler's address."""
    count: int = 0
    """Number of local workers to start."""

    @property
    def recorded(self) -> str:
        """As a run records it: without addresses, which are private."""
        return f"local:{self.count}" if self.kind == "local" else self.kind


def parse(text: str) -> Where:
    """Parse the text after `--on`. Raises Unreadable, also without dask."""
    if not find_spec("distributed"):
        raise Unreadable("--on needs dask[distributed]\n  Install the extra: pip install 'zoomgrad[fleet]'")
    if local := re.fullmatch(r"local:([1-9]\d?)", text, re.ASCII):
        return Where("local", count=int(local[1]))
    address = re.fullmatch(r"(tls|tcp)://(.+):(\d{1,5})", text, re.ASCII)
    if not address or int(address[3]) >= 65536:
        raise Unreadable(f"{text!r} is not a place for a fleet\n  Write for example {FORMS}.")
    if address[1] == "tls":
        return Where("tls", text)
    if not is_loopback(address[2]):
        raise Unreadable(
            f"{text}: whoever reaches a dask scheduler without TLS can run any code as you\n"
            "  Use tls:// (docs/fleet.md), or a tunnel to this machine."
        )
    return Where("tcp", text)


def is_loopback(host: str) -> bool:
    """Whether that name or address, perhaps in brackets, is this machine's own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
