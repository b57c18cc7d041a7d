"""The text after `--on` -> the place of a fleet, refused if it would let strangers in. Imports nothing of dask.

dask runs whatever it is sent: whoever reaches a scheduler or a worker without TLS runs code as its user. So plain TCP
stays on this machine unless the user insists. With TLS, one file is key, certificate and authority at once: the shared
secret of the fleet. Whoever lacks it is turned away.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SECRET = "ZOOMGRAD_FLEET_SECRET"  # noqa: S105  (the name of a variable)
"""Environment variable: path of the fleet's shared secret."""

FORMS = "local:2, tls://scheduler:8786, tcp://127.0.0.1:8786, ssh:hosts.txt or slurm:partition:4"
MOST_LOCAL = 64
_PARTITION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HOST = re.compile(
    r"(?:([A-Za-z0-9._][A-Za-z0-9._-]{0,63})@)?([A-Za-z0-9](?:\.?[A-Za-z0-9-]){0,252}|\[[0-9A-Fa-f:]+\])(?::(\d{1,5}))?"
)


class BadPlace(Exception):
    """A place that can't be used. The text has the reason and, on a second line, the remedy."""


@dataclass(frozen=True)
class Where:
    """Where a fleet is."""

    kind: Literal["local", "tcp", "tls", "ssh", "slurm"]
    address: str = ""
    """A scheduler's address, the file of hosts, or the partition."""
    count: int = 0
    """Number of hosts to start: local or under SLURM."""

    @property
    def recorded(self) -> str:
        """As a run records it: without addresses, which are private."""
        return f"local:{self.count}" if self.kind == "local" else self.kind


@dataclass(frozen=True)
class SshHost:
    """A line of the file of hosts."""

    user: str
    host: str
    port: int
    folder: str
    """The checkout there; empty for the home folder, with zoomgrad installed."""
    python: str


def parse(text: str, *, insecure: bool = False) -> Where:
    """Parse the text after `--on`. Raises BadPlace."""
    kind, _, rest = text.partition(":")
    if kind == "local" and rest.isdecimal() and 1 <= int(rest) <= MOST_LOCAL:
        return Where("local", count=int(rest))
    if kind in ("tcp", "tls") and (found := re.fullmatch(r"//(.+):(\d{1,5})", rest)) and int(found[2]) < 65536:
        if kind == "tcp" and not insecure and not is_loopback(found[1]):
            raise BadPlace(
                f"{text}: whoever reaches a dask scheduler without TLS can run any code as you\n"
                "  Use tls:// (docs/fleet.md), or give --insecure on a network that you trust."
            )
        if kind == "tls":
            secret_file()
        return Where("tls" if kind == "tls" else "tcp", text)
    if kind == "ssh" and rest:
        return Where("ssh", rest)
    partition, _, count = rest.partition(":")
    if (
        kind == "slurm"
        and _PARTITION.fullmatch(partition)
        and (not count or (count.isdecimal() and 1 <= int(count) <= 10_000))
    ):
        return Where("slurm", partition, int(count or 4))
    raise BadPlace(f"{text!r} is not a place for a fleet\n  Write for example {FORMS}.")


def is_loopback(host: str) -> bool:
    """Whether that name or address, perhaps in brackets, is this machine's own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def secret_file() -> Path:
    """Path of the shared secret. Raises BadPlace if there is none, or if others can read it."""
    named = os.environ.get(SECRET, "")
    file = Path(named)
    if not named or not file.is_file():
        problem = f"{named}: no such file" if named else f"{SECRET} is not set"
        raise BadPlace(
            f"TLS needs the fleet's shared secret: {problem}\n"
            f"  Make one: python -m harness.fleet.scheduler --make-secret FILE. Then set {SECRET}=FILE on every host."
        )
    if os.name == "posix" and file.stat().st_mode & 0o077:
        raise BadPlace(f"{file}: others may read the fleet's shared secret\n  Run: chmod 600 {shlex.quote(named)}")
    return file.absolute()


def ssh_hosts(file: Path) -> list[SshHost]:
    """Read `[user@]host[:port] [folder=PATH] [python=PATH]` per line. Raises BadPlace, which names the line."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadPlace(f"{file}: {error}\n  Give a file with one host per line.") from error
    found = []
    for number, line in enumerate(lines, 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise BadPlace(f"{file}: line {number}: {error}\n  {_SSH_REMEDY}") from error
        if not words:
            continue
        match = _HOST.fullmatch(words[0])
        options = dict(word.partition("=")[::2] for word in words[1:])
        if (
            not match
            or not options.keys() <= {"folder", "python"}
            or not all(options.values())
            or len(options) < len(words) - 1
            or int(match[3] or 22) > 65535
        ):
            raise BadPlace(f"{file}: line {number} is not a host: {line.strip()[:80]!r}\n  {_SSH_REMEDY}")
        user, host, port = match.groups()
        found.append(
            SshHost(
                user or "",
                host.strip("[]"),
                int(port or 22),
                options.get("folder", ""),
                options.get("python", "python3"),
            )
        )
    if not found:
        raise BadPlace(f"{file}: names no host\n  {_SSH_REMEDY}")
    return found


_SSH_REMEDY = "Write for example: ada@rack-1:22 folder=zoomgrad python=.venv/bin/python"
