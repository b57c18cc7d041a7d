"""The functions of kernel.h, which Python and C call, around the sections of a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from zoomgrad.engines.kernel.buffers import CACHE_LINE
from zoomgrad.engines.machine.buffers.copies import in_steps
from zoomgrad.engines.machine.buffers.rows import READ_COLUMNS
from zoomgrad.engines.machine.encode import R8, RAX, RCX, RDI, RDX, RSI, RSP, Assembler, Mem, Vec
from zoomgrad.engines.machine.expression import Evaluator
from zoomgrad.engines.machine.target import CALLEE_SAVED, WORDS, T, W, Word, word
from zoomgrad.engines.rerolled.step.step import Step

PROTOTYPES = {
    "set_input": "void (*)(double *, const struct column *, long long, long long)",
    "forward": "double (*)(const double *, const double *, double *, double *)",
    "backward": "void (*)(const double *, const double *, double *, double *)",
    "update": "void (*)(double *, double *, double, double)",
    "train": "long long (*)(const struct buffers *, const struct stretch *)",
}
DESCEND = "descend"
"""The routine that updates RCX parameters at RSI by their gradients at RDI. xmm0: the rate; xmm1: rows of the batch."""


@contextmanager
def function(code: Assembler, name: str, room: int) -> Iterator[None]:
    """A function for callers from C. room: bytes of stack, so that routines begin at a multiple of 16."""
    places = [(Mem(RSP, room + 8 * at), register) for at, register in enumerate(CALLEE_SAVED)]
    code.label(name)
    code.integer("sub", RSP, room + 8 * len(places))
    for place, register in places:
        code.integer("mov", place, register)
    yield
    for place, register in places:
        code.integer("mov", register, place)
    code.plain("vzeroupper")
    code.integer("add", RSP, room + 8 * len(places))
    code.plain("ret")


def write_functions(evaluator: Evaluator, step: Step) -> None:
    """Write the functions of kernel.h that the step has sections for."""
    code = evaluator.code
    _write_descend(evaluator, step)
    with _simple(code, "set_input"):
        for to, source in ((RAX, RCX), (R8, RDX), (RDX, RSI)):
            code.integer("mov", to, source)
        code.call(READ_COLUMNS)
    with _simple(code, "update"):
        for to, source in ((RAX, RDI), (RDI, RSI), (RSI, RAX)):
            code.integer("mov", to, source)
        code.integer("mov", RCX, step.loops.parameters)
        code.call(DESCEND)
    for name, last in (("forward", Word.Y), ("backward", Word.Q)):
        _write_pass(evaluator, step, name, last)
    if step.goes_over_rows:
        _write_train(code)


def go_on(code: Assembler, row: Mem, rows: Mem) -> None:
    """Go on to the next row, or to row 0 after the last one."""
    code.integer("mov", RAX, row)
    code.integer("add", RAX, 1)
    with code.unless("ne", RAX, rows):
        code.integer("mov", RAX, 0)
    code.integer("mov", row, RAX)


def label_of(name: str) -> str:
    """The label of a function, which may have the name of a section."""
    return f"{name}()"


@contextmanager
def _with_words(code: Assembler, name: str) -> Iterator[None]:
    """A function with words, which are 0 at first."""
    zero = Vec(0, 32)
    with function(code, label_of(name), room=8 * WORDS + 56):
        code.integer("lea", T, Mem(RSP, 48))
        code.integer("and", T, -64)  # a vector among the words lies in one cache line
        code.vector("vxorpd", zero, zero, zero)
        for at in range(0, WORDS, 4):
            code.vector("vmovupd_store", zero, None, Mem(T, 8 * at))
        yield


def _align(code: Assembler) -> None:
    """Set W to the start of the workspace, at a cache line: a vector that crosses one takes twice the time."""
    code.integer("mov", W, word(Word.WORKSPACE))
    code.integer("add", W, CACHE_LINE - 1)
    code.integer("and", W, -CACHE_LINE)


def _write_pass(evaluator: Evaluator, step: Step, name: str, last: Word) -> None:
    code = evaluator.code
    with _with_words(code, name):
        for which, register in ((Word.X, RDI), (Word.P, RSI), (Word.WORKSPACE, RDX), (last, RCX)):
            code.integer("mov", word(which), register)
        _align(code)
        code.call(name)
        evaluator.load(Vec(0, 8), Mem(W, 8 * step.loops.loss.base))


def _write_train(code: Assembler) -> None:
    turned, evaluates = code.new_label(), code.new_label()
    with _with_words(code, "train"):
        for pointer, first, stop in ((RSI, Word.COLUMNS, Word.X), (RDI, Word.X, Word.STEP)):
            for which in range(first, stop):
                code.integer("mov", RAX, Mem(pointer, 8 * (which - first)))
                code.integer("mov", Mem(T, 8 * which), RAX)
        _align(code)
        code.vector("vcvtsi2sd", Vec(0, 8), Vec(0, 8), word(Word.BATCH))
        code.vector("vmovsd_store", Vec(0, 8), None, word(Word.SIZE))
        with code.unless("e", word(Word.STEPS), 0):
            code.call("enter")
            with code.repeated() as end:
                code.jump(evaluates, "e", word(Word.LEARNS), 0)
                code.call("turn")
                code.jump(turned)
                code.label(evaluates)
                code.call("evaluate")
                code.label(turned)
                code.jump(end, "e", RAX, 0)
                code.integer("mov", RAX, word(Word.STEP))
                code.jump(end, "ge", RAX, word(Word.STEPS))
                # Y stays at the last step's outputs for `leave`.
                code.integer("mov", RAX, word(Word.Y_STEP))
                code.integer("mov", RCX, word(Word.Y))
                code.integer("lea", RCX, Mem(RCX, 0, RAX, 8))
                code.integer("mov", word(Word.Y), RCX)
            code.call("leave")
        code.integer("mov", RAX, word(Word.STEP))


@contextmanager
def _simple(code: Assembler, name: str) -> Iterator[None]:
    """A function that uses no register that it would have to restore."""
    code.label(label_of(name))
    yield
    code.plain("vzeroupper")
    code.plain("ret")


def _write_descend(evaluator: Evaluator, step: Step) -> None:
    """`p -= rate * q / rows`, then `q = 0`. If loops store few lanes, a wider load would wait for the stores."""
    code, lanes = evaluator.code, [loop.counts[-1] for loop in step.loops.loops if loop.counts]
    width = evaluator.registers.width if max(lanes, default=0) > 4 else 4

    def descend(step: int) -> None:
        rate, rows, change, old = (Vec(number, 8 * step) for number in range(4))
        kind = "pd" if step > 1 else "sd"
        code.vector(f"vmul{kind}", change, rate, Mem(RDI))
        code.vector(f"vdiv{kind}", change, change, rows)
        evaluator.load(old, Mem(RSI))
        code.vector(f"vsub{kind}", old, old, change)
        evaluator.store(Mem(RSI), old)
        evaluator.clear(change)
        evaluator.store(Mem(RDI), change)

    code.label(DESCEND)
    for number in range(2):
        evaluator.spread(Vec(number, 8 * width), Vec(number, 8))
    in_steps(code, (width, 1), descend, 8)
    code.plain("ret")
