"""The address after `--on`, refused if it would let strangers in. Imports nothing of dask.

dask runs whatever it is sent: whoever reaches a scheduler or a worker without TLS runs code as its user. So plain TCP
stays on this machine. Certificates are for dask's own configuration.
"""

from __future__ import annotations

import ipaddress
import re
from importlib.util import find_spec

from zoomgrad.results.files import Unreadable


def checked(address: str) -> str:
    """Return the address of a scheduler. Raises Unreadable, also without dask."""
    if not find_spec("distributed"):
        raise Unreadable("--on needs dask[distributed]\n  Install the extra: pip install 'zoomgrad[fleet]'")
    parts = re.fullmatch(r"(tls|tcp)://(.+):\d{1,5}", address, re.ASCII)
    if not parts:
        raise Unreadable(f"{address!r} is not a scheduler's address\n  Write for example tls://scheduler:8786.")
    if parts[1] == "tcp" and not is_loopback(parts[2]):
        raise Unreadable(
            f"{address}: whoever reaches a dask scheduler without TLS can run any code as you\n"
            "  Use tls:// (docs/fleet.md), or a tunnel to this machine."
        )
    return address


def is_loopback(host: str) -> bool:
    """Whether that name or address, perhaps in brackets, is this machine's own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
