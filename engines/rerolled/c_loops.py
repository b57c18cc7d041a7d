"""Loops -> C: each phase as functions, and what goes round them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

from engines.compiled.c_runtime import COLUMNS, UPDATE
from engines.compiled.c_source import PIECE, Source
from engines.graph.expr import number
from engines.rerolled import runtime
from engines.rerolled.c_nest import Due, Form, Manner, Nests
from engines.rerolled.c_text import braced, over, spread, vector
from engines.rerolled.groups import Phase
from engines.rerolled.loops import LANE_NAMES, Access, Loops, Operand, Table, affine, updates_in_place
from engines.rerolled.pairs import pair, rows_at_once
from engines.rerolled.zeros import Span, skipping

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
        self.pair = pair(loops) if form.rows and self.in_place and not self.skips else None
        """Loops whose weights travel together: deferred updates, and several rows at once."""
        kept = self.skips.inputs if self.skips else self.pair.inputs if self.pair else (0, 0)
        # The list has a count, and an integer for each input; a row has a double for each.
        stop = loops.workspace + (kept[1] - kept[0] + 16) // 8 * 8
        self.rows = rows_at_once(loops, self.pair, form.rows, stop) if self.pair and form.rows > 1 else None
        self.workspace = (self.rows.stop if self.rows else stop) + ALIGNMENT

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
            last = self._pieces("descend_at_last", [pair_.sink], rate=True)
            late = {**values, **self._pieces("descend_and_value", [pair_.forward], rate=True)}
            callers.append(self._all("descend_at_last", last, rate=True))
            callers.append(self._all("descend_and_values", late, rate=True))
        if pair_ and rows:
            manner = Manner(rows=rows.many)
            takes, _ = self._arguments(False)
            for name, loop in (("values_of_rows", rows.forward), ("sinks_of_rows", rows.sink)):
                self.functions.append(_Function(f"{PIECE} {name}({takes})", self.nests.write(loop, manner)))
            callers.append(
                self._all("values_but_first", {at: call for at, call in values.items() if at != pair_.forward})
            )
            callers.append(self._all("sinks_but_one", {at: call for at, call in sinks.items() if at != pair_.sink}))
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
        is_sink = self.loops.loops[at].phase == Phase.SINK
        return Manner(
            updates and is_sink,
            self.skips.sinks.get(at) if self.skips else None,
            self.skips.sums.get(at) if self.skips else None,
            self._due() if updates and not is_sink else None,
        )

    def _due(self) -> Optional[Due]:
        if not self.pair:
            return None
        before = Access(self.loops.workspace, (0,), (1,))
        return Due(self.pair.segment, self.pair.slot, before, self.pair.factor)

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
            place=self.loops.workspace,
            weights=squares(self.skips.weights),
            inputs=squares([self.skips.inputs]),
            factors=squares(self.skips.factors),
            **self._words(),
            vector=vector(width),
            total=" + ".join(f"sum[{lane}]" for lane in range(width)) if width > 1 else "sum",
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
            start, stop = self.pair.inputs
            words.update(runtime.DEFERRING)
            words["keep"] = words["keep"].format(start=start, count=stop - start, before=loops.workspace)
            one_block = self.nests.is_one_block(loops.loops[self.pair.forward])
            words["value"] = words["value"].format(one_block=int(one_block))
        if self.pair and self.rows:
            start, stop = self.pair.inputs
            forward = loops.loops[self.pair.forward]
            words["rows"] = runtime.ROWS.format(
                rows=self.rows.many,
                inputs=self.rows.inputs[0],
                step=self.rows.inputs[1],
                sums=self.rows.sums[0],
                factors=self.rows.factors[0],
                lanes=self.rows.sums[1],
                start=start,
                stop=stop,
                sum=forward.target.base,
                factor=self.pair.factor.base,
                width=forward.lanes,
                loss=_leaf(loops.loss),
            )
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


def _leaf(operand: Operand) -> str:
    assert not isinstance(operand, Table)
    return number(operand)[0] if isinstance(operand, float) else f"w[{operand.base}]"
