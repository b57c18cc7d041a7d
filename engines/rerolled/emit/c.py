"""Step -> C: the runs of each routine as functions, and each section as a function that calls them.

C that is the same for every graph is in the `.h` files of this folder and in the kernel's files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from zoomgrad.engines.kernel.buffers import CACHE_LINE
from zoomgrad.engines.kernel.c_text import BUFFERS, PIECE, Source, libm, table
from zoomgrad.engines.kernel.c_tree import (
    INDENT,
    Comment,
    For,
    Function,
    Include,
    Item,
    Statement,
    Text,
    call,
    defines,
    print_statements,
    unit,
)
from zoomgrad.engines.rerolled.emit.c_nest import COUNT, Nests
from zoomgrad.engines.rerolled.emit.c_section import BASE, OWN_AREAS, Section, arguments, identifier, spelled
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.recover.loops import LANE_NAMES, Copy, affine
from zoomgrad.engines.rerolled.step.language import Give, Place, Run, Take
from zoomgrad.engines.rerolled.step.shared import share_runs
from zoomgrad.engines.rerolled.step.step import Step

ENOUGH = 250
"""Minimum number of lines of pieces in a translation unit, about 30 ms of work, to justify a compiler process."""
SECTION_LINE = 9
"""Cost of compiling a line outside the pieces, in lines of a piece. It is high because such lines inline many calls."""
MEANINGS = {
    "x": "inputs",
    "k": "numbers",
    "p": "parameters",
    "v": "values",
    "q": "gradients of parameters",
    "g": "gradients of values",
    "u": "coefficients, and gradients of values without a place",
    "live": "the list of inputs that are not skipped",
    "before": "inputs of the row whose update waits",
    "own": "x, v, g and u of each of the rows taken together",
    "transposed": "copies of matrices, lanes side by side",
    "panel": "the lanes of a strip, term by term",
    "lists": "the lists of inputs that are not skipped, for each of these rows",
    "tiles": "the inputs of each tile of a sink, row by row",
    "turned": "for each input, a bit for each row that does not skip it",
}
"""Area of the workspace -> its content."""


def c_source(step: Step, form: Form) -> Source:
    """The C of the step, in as many translation units as are worth a compiler process."""
    return _Source(step, form).source()


class _Source:
    def __init__(self, step: Step, form: Form) -> None:
        self.step = share_runs(step)
        self.form = form
        self.nests = Nests(self.step, form)
        self.pieces: list[Function] = []

    def source(self) -> Source:
        """The translation units. The first one holds everything except the pieces of the others."""
        callers = [caller for name, runs in self.step.routines.items() for caller in self._routine(name, runs)]
        loop = [Include("kernel/train.c")] if self.step.goes_over_rows else []
        end = [*callers, *self._workspace(), *self._sections(), *loop]
        first, *others = self._divided(end)
        elsewhere = tuple(f"{piece.signature};" for pieces in others for piece in pieces)
        head = self._head()
        units = [unit([*head, *first, Text(elsewhere), *end]), *(unit([*head, *pieces]) for pieces in others)]
        return Source(units, self.step.workspace + CACHE_LINE // 8)

    # --- the head of each unit ---------------------------------------------------------------------------------------

    def _head(self) -> list[Item]:
        step, skips = self.step, self.step.skips
        loops = step.loops
        places = [f"enum {{ {area.name.upper()} = {area.start} }}; /* {MEANINGS[area.name]} */" for area in step.areas]
        head: list[Item] = [
            Comment(
                f"A Value graph as recovered loops: inputs {loops.inputs}, parameters {loops.parameters}, "
                f"outputs {len(loops.outputs)}. The workspace w holds them in the loops' order, in areas."
            ),
            defines(INPUTS=loops.inputs, PARAMETERS=loops.parameters, LANES=self.form.width),
            Text(places),
            libm(self.nests.calls),
            Include("rerolled/emit/vectors.h"),
            *self.nests.instead_of_libm(),
        ]
        if skips:
            start, stop = skips.inputs
            head += [defines(FIRST=start - loops.area("x").start, LISTED=stop - start), Include("rerolled/emit/live.h")]
        return [*head, Text([f"static const int {name}{places}" for places, name in self.nests.tables.items()])]

    # --- routines ----------------------------------------------------------------------------------------------------

    def _routine(self, name: str, runs: Sequence[Run]) -> list[Function]:
        """Append the pieces of a routine. If there are several, return a function that calls them."""
        parts: list[list[tuple[Run, Text]]] = [[]]
        for run in runs:
            if sum(len(body.lines) for _, body in parts[-1]) > self.form.piece:
                parts.append([])
            parts[-1].append((run, self._body(run)))
        names = [name] if len(parts) == 1 else [f"{name} part {n}" for n in range(len(parts))]
        pieces = [self._piece(of_part, *zip(*part)) for of_part, part in zip(names, parts)]
        self.pieces += pieces
        calls = [call(piece.name, arguments(self.step, [run for run, _ in part])) for piece, part in zip(pieces, parts)]
        return [] if len(parts) == 1 else [Function("static void", identifier(name), self._parameters(runs), calls)]

    def _body(self, run: Run) -> Text:
        """A run's statements, after a comment with the loop's text."""
        body = self.nests.write(run)
        # A single assignment needs no explanation.
        is_plain = len(body) == 1 and isinstance(body[0], str)
        what = f"Loop {run.number},{run.how}" if run.how else str(run).capitalize()
        text = what if is_plain else f"{what}: {self.step.line(run)}"
        lines = print_statements([Comment(text), *body])  # indented as in a function, to wrap the comment there
        return Text([line[len(INDENT) :] for line in lines])

    def _piece(self, name: str, runs: Sequence[Run], bodies: Sequence[Text]) -> Function:
        """A function over these runs."""
        named_areas = set().union(*(self.nests.areas[str(run)] for run in runs))
        areas = [area.name for area in self.step.areas if area.name in named_areas]
        own = OWN_AREAS if BASE in arguments(self.step, runs) else ""
        bases = [BASE if area in own else "w" for area in areas]
        pointers = [f"number *const {area} = {base} + {area.upper()};" for area, base in zip(areas, bases)]
        unused = ["(void)w;"] if "w" not in bases and own else []
        return Function(PIECE, identifier(name), self._parameters(runs), [*unused, *pointers, *bodies])

    def _parameters(self, runs: Sequence[Run]) -> tuple[str, ...]:
        return tuple(_DECLARED[name] for name in arguments(self.step, runs))

    def _divided(self, end: Sequence[Item]) -> list[list[Function]]:
        """Divide the pieces, in order, into translation units of about equal work.

        end: other items of the first unit.
        """
        lines = [SECTION_LINE * sum(map(_length, end)), *map(_length, self.pieces)]
        units = max(1, min(self.form.units, sum(lines) // ENOUGH))
        groups: list[list[Function]] = [[] for _ in range(units)]
        for piece, before in zip(self.pieces, accumulate(lines)):
            groups[min(units - 1, before * units // max(1, sum(lines)))].append(piece)
        return groups

    # --- the workspace -----------------------------------------------------------------------------------------------

    def _workspace(self) -> Iterator[Item]:
        """The interface, and functions that copy parameters and outputs."""
        loops, skips = self.step.loops, self.step.skips
        yield from map(Include, ("kernel/kernel.h", "kernel/rows.h"))
        if self.step.is_divided:
            yield defines(THREADS=self.form.threads)
            yield Include("rerolled/emit/threads.h")
        if self.step.goes_over_rows:
            yield Include("kernel/training.h")
        if self.step.weights is not None:
            yield defines(turn="evaluate", WEIGHTS="weights")  # it never learns
            yield Text(table("weights", self.step.weights))
        parameters = loops.area("p")
        yield Text(
            [
                f"enum {{ ROOM = {parameters.stop - parameters.start} }};",
                f"enum {{ LOSS = {spelled(self.step, Place(loops.loss.base))} }};",
            ]
        )
        yield Include("rerolled/emit/workspace.h")
        if "backward" in self.step.programs:
            yield Include("rerolled/emit/updates.h")
        if self.step.reads_numbers:
            yield Text(table("numbers", loops.numbers))
        moved = {statement.what for statement in self.step.statements() if isinstance(statement, (Take, Give))}
        for what, copies in (("parameters", loops.copies), ("outputs", loops.output_copies)):
            if what in moved:
                yield Comment(f"Copy all {what} from the caller's order to the loops' order, or back if `out`.")
                taken = (_W, "double *restrict buffer", "int out")
                body = list(self._copies(copies)) or ["(void)w, (void)buffer, (void)out;"]
                yield Function("static __attribute__((noinline)) void", f"move_{what}", taken, body)
        if skips:
            for name, (start, stop) in (("WEIGHT", skips.weights), ("FACTOR", skips.factors)):
                place = spelled(self.step, Place(start))
                yield Text([f"enum {{ {name} = {place}, {name}_COUNT = {stop - start} }};"])
            yield Include("rerolled/emit/zeros.h")

    def _copies(self, copies: Sequence[Copy]) -> Iterator[Statement]:
        """Loops that copy parameters, gradients or outputs between the caller's buffer and the workspace."""
        for counts, place, entry in copies:
            area = self.step.area_of(place.base)
            offset = affine(place.base - area.start, place.lanes[:-2], (), self.nests.listed)
            index = affine(entry.base, entry.lanes[:-2], (), self.nests.listed)
            rectangle = map(str, (*counts[-2:], *place.lanes[-2:], *entry.lanes[-2:]))
            first = (f"w + {area.name.upper()} + {offset}", f"buffer + {index}", "out")
            nest: Statement = call("move_nest", (*first, *rectangle))
            for name, count in reversed(list(zip(LANE_NAMES, counts[:-2]))):
                nest = For(name, count, [nest])
            yield nest

    # --- sections ----------------------------------------------------------------------------------------------------

    def _sections(self) -> Iterator[Item]:
        """`forward` and `backward`, and the functions of the loop over rows."""
        for name, (kind, parameters, first, last) in _SECTIONS.items():
            if name in self.step.programs:
                section = Section(self.step, buffers="t->" if parameters == (_TRAINING,) else "")
                body = section.statements(self.step.programs[name])
                if name == "leave" and self.step.is_divided:
                    body.append("end_helpers(&t->crew);")
                yield from section.shares.values()
                yield Function(kind, name, parameters, [*first, *body, *last])


_W, _TRAINING = "number *restrict w", "struct training *t"
_DECLARED = {
    "w": _W,
    "live": "const struct live *live",
    "lists": "const struct live *lists",
    "turned": "const word *turned",
    COUNT: "long long count",
    "rate": "number rate",
    BASE: "number *restrict base",
    "part": "long long part",
    "parts": "long long parts",
}


_PASS = (BUFFERS["x"], BUFFERS["p"], "double *work")
_ALIGNED = "number *const w = aligned(work);"
_SECTIONS: dict[str, tuple[str, tuple[str, ...], list[Statement], list[Statement]]] = {
    "forward": ("double", (*_PASS, BUFFERS["y"]), [_ALIGNED], ["return w[LOSS];"]),
    "backward": ("void", (*_PASS, BUFFERS["q"]), ["(void)x, (void)p;", _ALIGNED], []),
    "enter": ("static void", (_TRAINING,), ["t->w = aligned(t->w);"], []),
    "turn": ("static int", (_TRAINING,), [], ["return 1;"]),
    "evaluate": ("static int", (_TRAINING,), [], ["return 1;"]),
    "leave": ("static void", (_TRAINING,), [], []),
}
"""A section -> its result type and parameters as a function, and the statements before and after its own."""


def _length(item: Item) -> int:
    """Number of lines in a function. Included files count as 0, because most of their lines are comments."""
    if not isinstance(item, Function):
        return 0
    return sum(len(s.lines) if isinstance(s, Text) else len(print_statements([s])) for s in item.body)
