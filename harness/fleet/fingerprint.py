"""What must be the same on all hosts, as digests, and what may differ, as recorded facts.

Code, locks and settings must be the same: a host with other code measures something else. Machines may differ. So may
their mathematical libraries, which is why engines are vouched for on each host.
"""

from __future__ import annotations

import hashlib
import math
import platform
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.machine import facts
from harness.machine.interpreters import Interpreter
from harness.machine.project import LOCKS, SOURCES, code_digest
from results.fields import OneLine
from results.places import IS_CHECKOUT, ROOT
from results.record import HostFacts, Model, Run

NEW_PER_RUN = {"hosts"}
"""Fields of a run that change while it is measured."""


class Fingerprint(Model):
    """Digests that must be equal on the client and on every host."""

    code: OneLine
    """Of every source file of our packages."""
    locks: OneLine
    """Of the lock files that worker environments are made from."""
    settings: OneLine
    """Of the plan, as the host understood it."""


class Refused(Exception):
    """A host can't take part. The text has the reason and, on a second line, the remedy."""


def fingerprint(run: Run) -> Fingerprint:
    """The digests of this copy of zoomgrad, and of the run's plan."""
    plan = run.model_dump_json(exclude=NEW_PER_RUN)
    return Fingerprint(
        code=code_digest(SOURCES),
        locks=code_digest(LOCKS),
        settings=hashlib.sha256(plan.encode()).hexdigest(),
    )


def check(here: Fingerprint, there: Fingerprint, commit: str) -> None:
    """Raise Refused if a host differs from the client. commit: the client's, `+` if its files differ from it."""
    if (here.code, here.locks) != (there.code, there.locks):
        what = "code differs" if here.code != there.code else "lock files differ"
        if commit and not commit.endswith("+"):
            remedy = f"Run there, in the checkout: git fetch && git checkout {commit}"
        elif IS_CHECKOUT:
            remedy = f"Copy this checkout there: rsync -a --delete --exclude .zoomgrad {ROOT}/ HOST:FOLDER/"
        else:
            remedy = "Install the same release of zoomgrad there."
        raise Refused(f"its {what} from the client's ({there.code[:12]}, not {here.code[:12]})\n  {remedy}")
    if here.settings != there.settings:
        raise Refused(
            "it understood the run's settings differently\n"
            "  Install the same versions there: pip install -r requirements/harness.lock"
        )


def describe(run: Run, found: Sequence[Interpreter], slot: str) -> HostFacts:
    """Facts about this host. slot: distinguishes hosts that share a machine in a test."""
    wanted = {cell.interpreter for cell in run.cells}
    return HostFacts(
        identity=_identity(run, slot),
        machine=facts.gather(),
        libm=libm(),
        marks=() if slot else facts.marks(),
        shared=bool(slot),
        interpreters={one.name: one.full_version for one in found if one.name in wanted},
    )


def same_interpreters(run: Run, host: HostFacts) -> tuple[set[str], Mapping[str, str]]:
    """Interpreters that the host may measure, and those of another version, which it may not: `name -> version`."""
    other = {
        name: version
        for name, version in host.interpreters.items()
        if (planned := run.interpreters.get(name)) and planned.version not in ("", version)
    }
    return set(host.interpreters) - set(other), other


def _identity(run: Run, slot: str) -> str:
    """Digest that identifies this machine within this run only."""
    parts = [run.id, str(run.seed), platform.node(), slot]
    for file in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            parts.append(Path(file).read_text(encoding="utf-8").strip())
            break
        except OSError:
            continue
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def libm() -> str:
    """Digest of the mathematical library's results for fixed inputs: it differs where the last digits do."""
    inputs = [math.ldexp(1 + k / 997, k % 7 - 3) for k in range(997)]
    numbers = [f(x) for x in inputs for f in (math.exp, math.tanh, math.log)]
    numbers += [math.pow(x, y) for x in inputs for y in (-1.0, 2.5, 3.0)]
    return hashlib.sha256(struct.pack(f"<{len(numbers)}d", *numbers)).hexdigest()[:16]
