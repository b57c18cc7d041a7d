"""Runs of one program -> verdict: does `zoomgrad exec` print the same, and was its Value replaced?"""

import difflib
import functools
import math
import re
from dataclasses import dataclass, field

from tests.literature.run import parts

SAME, LAST_DIGITS = "same", "last digits"
EXEC = "exec"
NUMBER = r"-?\d+\.\d+(?:e[-+]?\d+)?"


@dataclass
class Verdict:
    """How one program fared."""

    program: str
    defines: bool
    alone: str = ""  # empty if it runs by itself, else why not
    exec: str = ""  # SAME or LAST_DIGITS, or how the output differs, or why it fails
    lines: list = field(default_factory=list)  # what `exec` says of its classes

    @property
    def replaced(self):
        return any("runs in C" in line for line in self.lines)


def judge(program, run):
    """Run a program by itself and under `exec`. run: program, how -> Run."""
    alone = run(program, "")
    verdict = Verdict(program.name, program.defines, alone=_why_not(program, alone))
    if verdict.alone:
        return verdict
    found = run(program, EXEC)
    verdict.lines = [line for line in found.lines if ": left out " not in line]
    verdict.exec = _failure(found, alone) or _difference(alone, found)
    if verdict.exec not in (SAME, LAST_DIGITS) and found.ran:
        # What also differs from run to run, such as times and the order of sets, is no difference.
        verdict.exec = _failure(found, alone) or _beyond_noise(alone, run(program, ""), found, run(program, EXEC))
    return verdict


def _difference(alone, found):
    """How the output differs."""
    count = _differing(alone, found)
    if count and len(_lines(alone)) == len(_lines(found)) and all(map(_alike, _lines(alone), _lines(found))):
        return LAST_DIGITS
    return f"{count:,} lines differ" if count else SAME


def _alike(line, other):
    """Whether two lines differ in the last digits of their numbers only."""
    parts, others = (re.split(NUMBER, text) for text in (line, other))
    numbers, other_numbers = (map(float, re.findall(NUMBER, text)) for text in (line, other))
    return parts == others and all(
        map(functools.partial(math.isclose, rel_tol=1e-6, abs_tol=1e-9), numbers, other_numbers)
    )


def _why_not(program, alone):
    """Why a program does not run by itself, or an empty text."""
    if not alone.ran:
        return alone.outcome
    if program.path.suffix == ".ipynb" and not alone.backward:
        missing = [text for text in alone.cells.values() if text.startswith("needs ")]
        first = (missing or [*alone.cells.values(), "it has no such cell"])[0]
        return f"no cell that calls backward ends: {first}"
    return ""


def _failure(found, before):
    """What fails here and did not fail before."""
    if not found.ran:
        return found.outcome
    new = [number for number in found.cells if number not in before.cells]
    return f"cell {new[0]}: {found.cells[new[0]]}" if new else ""


def _lines(run):
    """The output, without addresses of objects. What `<… at 0x…>` says of an object's kind is no result either."""
    return re.sub(r"<[^<>\n]*(<[^<>\n]*>[^<>\n]*)*0x[0-9a-f]{6,}>", "<…>", run.output).splitlines()


def _rounded(run):
    return re.sub(NUMBER, lambda number: f"{float(number[0]):.6g}", "\n".join(_lines(run)))


def _beyond_noise(alone, again, found, found_again):
    """How the output differs, without what also differs from run to run: times, and the order of sets."""
    noise = _unstable(alone, again) | _unstable(found, found_again)
    differing = _differing(alone, found, noise)
    unordered = noise and parts(_rounded(alone)) == parts(_rounded(found))
    return f"{differing:,} lines differ" if differing and not unordered else SAME


def _unstable(first, second):
    """Numbers of the lines that differ between two runs."""
    return {
        number for number, (one, other) in enumerate(zip(_lines(first), _lines(second), strict=False)) if one != other
    }


def _differing(one, other, noise=frozenset()):
    """How many lines differ. Lines in `noise` don't count."""
    left, right = _lines(one), _lines(other)
    if len(left) == len(right):
        return sum(a != b and number not in noise for number, (a, b) in enumerate(zip(left, right, strict=True)))
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    return sum(max(b - a, d - c) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal")
