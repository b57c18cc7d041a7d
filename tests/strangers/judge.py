"""Runs of one program -> verdict: does it run unchanged on an engine, with the bits of `tuple`?"""

import difflib
import re
from dataclasses import dataclass, field

from tests.literature.run import parts
from tests.strangers.wrap import COMPILED, wrapped

REFERENCE = "tuple"
SAME = "same"


@dataclass
class Verdict:
    """How one program fared."""

    program: str
    alone: str = ""  # empty if it runs by itself, else why not
    reason: str = ""  # why it fails on the reference, though it runs by itself
    engines: dict = field(default_factory=dict)  # engine -> SAME, or what differs
    changed: dict = field(default_factory=dict)  # engine -> output lines that differ from the reference's
    from_alone: str = ""  # how the reference's output differs from the program's own
    values: int = 0  # Values whose data and gradients were compared
    seconds: dict = field(default_factory=dict)
    compiled: str = ""  # SAME if its losses run under the decorator with the same bits, else why not
    moved: int = 0  # lines that move or are new for that

    @property
    def unchanged(self):
        return SAME in self.engines.values()


def judge(program, engines, run):
    """Run a program by itself, on the reference and on the engines. run: program, engine -> Run."""
    alone = run(program, "")
    verdict = Verdict(program.name, alone=_why_not(program, alone))
    if verdict.alone:
        return verdict
    reference = run(program, REFERENCE)
    verdict.reason = _failure(reference, alone)
    if verdict.reason:
        return verdict
    verdict.from_alone = _from_alone(alone, reference)
    verdict.values = sum(count for count, _ in reference.numbers.values())
    verdict.seconds = {"": alone.seconds, REFERENCE: reference.seconds}
    for engine in engines:
        found = run(program, engine)
        verdict.seconds[engine] = found.seconds
        if engine.startswith(COMPILED):
            verdict.moved = wrapped(program.source)[1]
            verdict.compiled = _compiled(found, reference) if verdict.moved else "no loss to move was found"
            continue
        verdict.changed[engine] = 0
        verdict.engines[engine] = _failure(found, reference) or SAME
        if verdict.engines[engine] == SAME and _lines(found) != _lines(reference):
            verdict.changed[engine] = _beyond_noise(reference, run(program, REFERENCE), found, run(program, engine))
            if verdict.changed[engine]:
                verdict.engines[engine] = f"{verdict.changed[engine]:,} lines differ"
        if verdict.engines[engine] == SAME and found.numbers != reference.numbers:
            either = sorted(found.numbers.keys() | reference.numbers.keys())
            names = [name for name in either if found.numbers.get(name) != reference.numbers.get(name)]
            verdict.engines[engine] = f"other bits in {', '.join(names[:3])}"
    return verdict


def _compiled(found, reference):
    """SAME if a loss ran compiled, and all Values that are left have the reference's bits.

    The loss itself and what is returned with it are no Values then, so they are not compared.
    """
    if not found.ran:
        return found.outcome
    reasons = [text for text in found.compiled.get("report", []) if text.startswith("runs as it is: ")]
    if not found.compiled.get("calls"):
        new = _failure(found, reference)
        return (reasons or [new or "no loss was called"])[0]
    left = {name for name, (count, _) in found.numbers.items() if reference.numbers.get(name, [0])[0] == count}
    other = sorted(name for name in left if found.numbers[name] != reference.numbers[name])
    return f"other bits in {', '.join(other[:3])}" if other else SAME


def _from_alone(alone, reference):
    """How the output differs: a class of the program's own may compute otherwise, for example `tanh` by two `exp`."""
    count = _differing(alone, reference)
    if count and [_rounded(line) for line in _lines(alone)] == [_rounded(line) for line in _lines(reference)]:
        return "last digits"
    return f"{count:,} lines" if count else ""


def _rounded(line):
    return re.sub(r"-?\d+\.\d+(e[-+]?\d+)?", lambda number: f"{float(number[0]):.7g}", line)


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


def _beyond_noise(reference, again, found, found_again):
    """How many lines differ, without what also differs from run to run on one engine: times, and the order of sets."""
    noise = _unstable(reference, again) | _unstable(found, found_again)
    differing = _differing(reference, found, noise)
    unordered = noise and parts("\n".join(_lines(reference))) == parts("\n".join(_lines(found)))
    return 0 if unordered else differing


def _unstable(first, second):
    """Numbers of the lines that differ between two runs on the same engine."""
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
