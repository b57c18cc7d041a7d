"""Loops -> C: each phase as functions, and what goes round them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import indent
from typing import Any, NamedTuple, Optional

from engines.graph.expr import number
from engines.kernel.c_runtime import COLUMNS, UPDATE
from engines.kernel.c_text import Source
from engines.rerolled.emit import runtime
from engines.rerolled.emit.c_nest import Due, Form, Manner, Nests
from engines.rerolled.emit.c_text import braced, over, spread, vector
from engines.rerolled.rearrange.weight_reuse import Pair, pair, rows_at_once
from engines.rerolled.rearrange.zeros import Span, skipping
from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import LANE_NAMES, Access, Loop, Loops, Operand, Table, affine, updates_in_place
from engines.straight.c_source import PIECE

ENOUGH = 400
"""Lines that are worth a translation unit, and a compiler process, of their own."""
ALIGNMENT = 8
"""Doubles by which a workspace may have to move to begin at a multiple of 64 bytes."""


def c_source(loops: Loops, form: Form) -> Source:
    """The C of both passes and of training."""
    return _Program(loops, form).source()


class _Function(NamedTuple):
    """Statements of some loops."""

    signature: str
    lines: list[str]

    def __str__(self) -> str:
        return "\n".join([self.signature, *braced("", self.lines), ""])


class _Program:
    def __init__(self, loops: Loops, form: Form) -> None:
        self.loops = loops
        self.form = form
        self.away = loops.area("q").start - loops.area("p").start
        self.nests = Nests(form, self.away)
        self.in_place = updates_in_place(loops)
        self.skips = skipping(loops) if form.sparse else None
        self.functions: list[_Function] = []
        self.pair = self._pair()
        """Loops whose weights travel together: deferred updates, and several rows at once."""
        self.live = self.before = stop = loops.workspace
        """Places of the list of inputs that are not skipped, and of the inputs before these."""
        if self.skips:
            self.before = stop = stop + _room(self.skips.inputs)
        if self.pair:
            stop += _room(self.pair.inputs)
        self.rows = rows_at_once(loops, self.pair, form.rows, stop) if self.pair and form.rows > 1 else None
        self.workspace = (self.rows.stop if self.rows else stop) + ALIGNMENT

    def _pair(self) -> Optional[Pair]:
        """None where weights need not travel together, or where not all that do skip alike."""
        found = pair(self.loops) if self.form.rows and self.in_place else None
        if found and self.skips:
            alike = found.inputs == self.skips.inputs
            return found if alike and found.forward in self.skips.sums and found.sink in self.skips.sinks else None
        return found

    def source(self) -> Source:
        """The functions come first: they tell what stands above them."""
        loops, pair_, rows = self.loops, self.pair, self.rows
        numbers = {phase: [at for at, loop in enumerate(loops.loops) if loop.phase == phase] for phase in Phase}
        values = self._pieces("value", numbers[Phase.FORWARD])
        sinks = self._pieces("sink", numbers[Phase.SINK])
        callers = [
            self._all("values", values),
            self._all("gradients", self._pieces("gradient", numbers[Phase.BACKWARD])),
            self._all("sinks", sinks),
        ]
        if self.in_place:
            at_once = [at for at in numbers[Phase.SINK] if not pair_ or at != pair_.sink]
            callers.append(self._all("descend", self._pieces("descend", at_once, rate=True), rate=True))
        if pair_:
            met = self._one("descend_and_value", loops.loops[pair_.forward], Manner(due=self._due(pair_)), rate=True)
            callers.append(self._all("descend_and_values", {**values, pair_.forward: met}, rate=True))
            self._one("settle", self._of_before(pair_), Manner(in_place=True), rate=True)
        if pair_ and self.skips:
            self._one("descend_one", loops.loops[pair_.sink], self._manner(pair_.sink, True), rate=True)
        if pair_ and rows:
            self._one("values_of_rows", rows.forward, Manner(rows=rows.many))
            self._one("sinks_of_rows", rows.sink, Manner(rows=rows.many))
            but_first = {at: call for at, call in values.items() if at != pair_.forward}
            but_one = {at: call for at, call in sinks.items() if at != pair_.sink}
            callers.append(self._all("values_but_first", but_first))
            callers.append(self._all("sinks_but_one", but_one))
            callers.append(self._all("sink_one", {pair_.sink: sinks[pair_.sink]}))

        round_ = self._round()
        groups = self._divided(2 * round_.count("\n"))  # its lines take twice the time of the others
        head, *units = [f"{self._head()}\n" + "\n".join(map(str, functions)) for functions in groups]
        elsewhere = "".join(f"{function.signature};\n" for functions in groups[1:] for function in functions)
        return Source(["\n".join([head, elsewhere, *callers, round_]), *units], self.workspace)

    def _head(self) -> str:
        """What stands above the functions of each unit."""
        loops, nests = self.loops, self.nests
        widths = sorted(nests.widths | ({self.form.width} - {1}))
        return "\n".join(
            [
                runtime.HEAD.format(
                    inputs=loops.inputs,
                    parameters=loops.parameters,
                    workspace=self.workspace,
                    outputs=len(loops.outputs),
                ),
                *(f"double {name}({', '.join(['double'] * arity)});" for name, arity in sorted(nests.calls)),
                runtime.WORDS,
                *(runtime.VECTORS.replace("@", str(n)).format(copies=", ".join(["a"] * n)) for n in widths),
                *(f"static const int {name}{places}" for places, name in nests.tables.items()),
                runtime.LIST.format(count=self.skips.inputs[1] - self.skips.inputs[0]) if self.skips else "",
            ]
        )

    def _divided(self, before: int) -> list[list[_Function]]:
        """Functions by translation unit: neighbours together, about equally many lines in each.

        before: how many the first unit has anyway.
        """
        lines = before + sum(len(function.lines) for function in self.functions)
        units = max(1, min(self.form.units, lines // ENOUGH))
        groups: list[list[_Function]] = [[] for _ in range(units)]
        for function in self.functions:
            groups[min(units - 1, before * units // max(1, lines))].append(function)
            before += len(function.lines)
        return groups

    def _pieces(self, name: str, numbers: Sequence[int], *, rate: bool = False) -> dict[int, str]:
        """Write loops as functions of some lines each; gives the call of each by the number of its first loop.

        A loop of the pair is alone in its function. rate: whether they update.
        """
        alone = (self.pair.forward, self.pair.sink) if self.pair else ()
        functions: dict[int, list[str]] = {}
        first = -1
        for at in numbers:
            if first < 0 or at in alone or first in alone or len(functions[first]) > self.form.piece:
                first = at
            functions.setdefault(first, []).extend(self.nests.write(self.loops.loops[at], self._manner(at, rate)))
        takes, passes = self._arguments(rate)
        for first, lines in functions.items():
            self.functions.append(_Function(f"{PIECE} {name}_{first}({takes})", lines))
        return {first: f"{name}_{first}({passes});" for first in functions}

    def _one(self, name: str, loop: Loop, manner: Manner, *, rate: bool = False) -> str:
        """Write a loop as a function of that name; gives its call."""
        takes, passes = self._arguments(rate)
        self.functions.append(_Function(f"{PIECE} {name}({takes})", self.nests.write(loop, manner)))
        return f"{name}({passes});"

    def _all(self, name: str, calls: Mapping[int, str], *, rate: bool = False) -> str:
        """A function that calls others."""
        takes, _ = self._arguments(rate)
        return "\n".join([f"static void {name}({takes})", *braced("", list(calls.values()) or ["(void)w;"]), ""])

    def _arguments(self, rate: bool) -> tuple[str, str]:
        """What such functions take, and how it is passed on."""
        given = {"w": "double *restrict w"}
        if self.skips:
            given["live"] = "const struct live *live UNUSED"
        if rate:
            given["rate"] = "double rate UNUSED"
        return ", ".join(given.values()), ", ".join(given)

    def _manner(self, at: int, updates: bool) -> Manner:
        """How the loop of that number is written."""
        return Manner(
            updates and self.loops.loops[at].phase == Phase.SINK,
            self.skips.sinks.get(at) if self.skips else None,
            self.skips.sums.get(at) if self.skips else None,
        )

    def _due(self, found: Pair) -> Due:
        return Due(found.segment, found.slot, Access(self.before, (0,), (1,)), found.factor)

    def _of_before(self, found: Pair) -> Loop:
        """The sink, over the inputs before these."""
        sink = self.loops.loops[found.sink]
        (segment,) = sink.segments
        x, factor = segment.operands
        assert isinstance(x, Access)
        return replace(sink, segments=(segment._replace(operands=(x._replace(base=self.before), factor)),))

    def _live(self) -> str:
        """How the list of inputs that are not skipped is made, and when it must hold all."""
        if not self.skips:
            return ""
        start, stop = self.skips.inputs
        width = self.form.width

        def squares(spans: Sequence[Span]) -> str:
            return " + ".join(f"squares(w + {first}, {last - first})" for first, last in spans) or "0.0"

        return runtime.LIVE.format(
            start=start,
            count=stop - start,
            place=self.live,
            weights=squares(self.skips.weights),
            inputs=squares([self.skips.inputs]),
            factors=squares(self.skips.factors),
            **self._words(),
            vector=vector(width),
            mask=f"m{width}" if width > 1 else "int",
            total=_over_lanes("sum", " + ", width),
            any=_over_lanes("found", " | ", width),
        )

    def _round(self) -> str:
        """The way into the workspace and out of it, and training."""
        loops, away = self.loops, self.away
        p, k = loops.area("p"), loops.area("k")
        words = dict(runtime.PLAIN)
        if self.in_place:
            words.update(runtime.IN_PLACE)
        if self.skips:
            words.update(runtime.SKIPPING)
        if self.pair:
            words.update(runtime.SKIPPING_OR_DEFERRING if self.skips else runtime.DEFERRING)
            words.update(self._for_pair(words, self.pair))
        outputs = "".join(f"    y[{index}] = {_leaf(output)};\n" for index, output in enumerate(loops.outputs))
        live = self._live()
        return live + runtime.RUNTIME.format(
            export="",
            columns=COLUMNS.format(inputs=loops.inputs, parameters=loops.parameters, export=""),
            plain=UPDATE.format(export=""),
            **self._words(),
            rate=spread("rate", self.form.width),
            batch=spread("batch", self.form.width),
            p=p.start,
            q=p.start + away,
            size=p.stop - p.start,
            numbers="".join(f"    w[{k.start + at}] = {number(x)[0]};\n" for at, x in enumerate(loops.numbers)),
            copies=self._copies(),
            give_outputs=outputs or "    (void)w, (void)y;\n",
            loss=_leaf(loops.loss),
            **words,
        )

    def _for_pair(self, words: Mapping[str, str], found: Pair) -> dict[str, str]:
        """The words about what the pair does, with its places in them."""
        loops, rows = self.loops, self.rows
        start, stop = found.inputs
        forward = loops.loops[found.forward]
        places: dict[str, Any] = {
            "start": start,
            "stop": stop,
            "count": stop - start,
            "before": self.before,
            "one_block": int(self.nests.is_one_block(forward)),
            "live": words["live"],
            "after": indent(words["after"], " " * 12),
            "full": f" && live->count == {stop - start}" if self.skips else "",
            "unless": f"        if (has_zeros(x + {start}))\n            return 0;\n" if self.skips else "",
            "sum": forward.target.base,
            "factor": found.factor.base,
            "width": forward.lanes,
            "loss": _leaf(loops.loss),
        }
        names = ["prepare", "keep", "find", "value", "descend", "at_last"]
        filled = {name: words[name] for name in names}
        if rows:
            filled.update(rows=runtime.ROWS, take_rows=runtime.TAKE_ROWS)
            places.update(
                rows=rows.many,
                inputs=rows.inputs[0],
                step=rows.inputs[1],
                sums=rows.sums[0],
                factors=rows.factors[0],
                lanes=rows.sums[1],
            )
        return {name: text.format(**places) for name, text in filled.items()}

    def _words(self) -> dict[str, Any]:
        """How runtime functions write vectors."""
        width = self.form.width
        return {"width": width, "zero": spread("0.0", width), "at": f"AT{width}" if width > 1 else "*"}

    def _copies(self) -> str:
        """Nests that bring every parameter, or its gradient, from the caller's order to the loops' or back."""
        lines: list[str] = []
        for copy in self.loops.copies:
            place = affine(copy.place.base, copy.place.lanes, (), self.nests.listed)
            index = affine(copy.parameter.base, copy.parameter.lanes, (), self.nests.listed)
            body = [
                f"double *ours = w + {place}, *other = theirs + {index};",
                "*(out ? other : ours) = *(out ? ours : other);",
            ]
            for name, count in reversed(list(zip(LANE_NAMES, copy.counts))):
                body = over(name, count, 1, body)
            lines += body if copy.counts else braced("", body)
        return "".join(f"    {line}\n" for line in lines or ["(void)w, (void)theirs, (void)out;"])


def _room(span: Span) -> int:
    """Doubles for a copy of these places, or for a list of them: a count, and an integer for each."""
    return (span[1] - span[0] + 16) // 8 * 8


def _leaf(operand: Operand) -> str:
    assert not isinstance(operand, Table)
    return number(operand)[0] if isinstance(operand, float) else f"w[{operand.base}]"


def _over_lanes(name: str, infix: str, width: int) -> str:
    """All lanes of a vector in one."""
    return infix.join(f"{name}[{lane}]" for lane in range(width)) if width > 1 else name
