"""Merged -> C: pieces that run the loops of every graph, a table of their numbers, and the passes of each graph.

A piece declares the columns of the table that its loops name. So a compiler knows that they don't change within the
piece, although the loops store to memory.

Parts that differ only in their columns and places, as those of two layers do, share a function. Its arguments are their
columns and places.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Optional

from zoomgrad.engines.graph.expr import number
from zoomgrad.engines.kernel.c_text import Source, libm, unit
from zoomgrad.engines.kernel.c_tree import (
    COLUMNS,
    Block,
    Call,
    Comment,
    Declarations,
    Declare,
    Define,
    For,
    Function,
    Include,
    Item,
    Return,
    Statement,
    Text,
    print_statements,
)
from zoomgrad.engines.rerolled.emit.c import ALIGNMENT, ENOUGH
from zoomgrad.engines.rerolled.emit.c_nest import Nests
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.merged.merge import Merged, MergedLoop, Rounds
from zoomgrad.engines.rerolled.merged.places import DIRECT
from zoomgrad.engines.rerolled.merged.table import Column, Number, Part
from zoomgrad.engines.rerolled.merged.transpose import AREA
from zoomgrad.engines.rerolled.recover.groups import Phase
from zoomgrad.engines.rerolled.recover.loops import LANE_NAMES, Access, Loop, affine
from zoomgrad.engines.rerolled.step.step import Step

_PIECE = ("const struct areas *a",)


def c_merged(merged: Merged, form: Form) -> Source:
    """The C, in as many translation units as are worth a compiler process."""
    return _MergedSource(merged, form).source()


class _MergedSource:
    def __init__(self, merged: Merged, form: Form) -> None:
        self.merged = merged
        self.form = form
        self.nests = Nests(merged.areas, form)
        self.abstract = [_Abstract(part, merged.areas, self.nests) for part in merged.parts]
        texts = Counter(each.text for each in self.abstract)
        self.shared: dict[str, Function] = {}
        """The text of parts that occur more than once -> their function."""
        for each in self.abstract:
            if texts[each.text] > 1 and each.text not in self.shared:
                self.shared[each.text] = each.function(f"loops_{len(self.shared)}")

    def source(self) -> Source:
        """The translation units. The first one also has the table and the passes."""
        passes = {name: list(self._pieces(phases)) for name, phases in _PHASES.items()}
        pieces = [*self.shared.values(), *(piece for of_pass in passes.values() for piece in of_pass)]
        first, second = self._divided(pieces)
        head = self._head()
        end = list(self._end(passes))
        units = [unit([*head, Declarations(tuple(piece.prototype for piece in second)), *first, *end])]
        if second:
            shared = Declarations(tuple(piece.prototype for piece in first if piece in self.shared.values()))
            units.append(unit([*head, shared, *second]))
        workspace = sum(area.stop - area.start for area in self.merged.areas.areas if area.name not in DIRECT)
        return Source(units, workspace + ALIGNMENT)

    def _divided(self, pieces: Sequence[Function]) -> tuple[list[Function], list[Function]]:
        """Pieces for the first unit and for the second, which has half of the work if there is enough of it."""
        lengths = [len("\n".join(print_statements(piece.body)).split("\n")) for piece in pieces]
        if self.form.units == 1 or sum(lengths) < 2 * ENOUGH:
            return list(pieces), []
        before, at = 0, 0
        while 2 * (before + lengths[at]) <= sum(lengths):
            before, at = before + lengths[at], at + 1
        return list(pieces[:at]), list(pieces[at:])

    # --- pieces ------------------------------------------------------------------------------------------------------

    def _pieces(self, phases: Sequence[Phase]) -> Iterator[Function]:
        """Functions for the loops of a pass, each with about as many lines as the form says."""
        body: dict[int, Text] = {}
        lines = 0
        for at, part in enumerate(self.merged.parts):
            if part.loops[0].loop.phase not in phases:
                continue
            if lines > self.form.piece:
                yield self._piece(body)
                body, lines = {}, 0
            body[at] = Text(print_statements(self._part(at, part), indent=""))
            lines += len(body[at].lines)
        if body:
            yield self._piece(body)

    def _piece(self, body: Mapping[int, Text]) -> Function:
        named = set().union(*(self.nests.areas.get(str(at), set()) for at in body))
        pointers = _pointers(named)
        has_columns = any(self.merged.parts[at].columns() for at in body)
        row = [Declare("const int *const", "row", "a->row")] if has_columns else []
        return Function("PIECE void", f"parts_{min(body)}_to_{max(body)}", _PIECE, [*pointers, *row, *body.values()])

    def _part(self, at: int, part: Rounds) -> list[Statement]:
        """The loops of a part, after the columns that they name; or the call of the function that runs them."""
        title = Comment(self.merged.line(part))
        copy = self._transposition(at, part)
        if copy:
            return [title, *copy]
        abstract = self.abstract[at]
        if abstract.text in self.shared:
            return [title, Call(self.shared[abstract.text].name, ("a", *abstract.arguments))]
        columns: list[Statement] = [
            Declare("const int *const", str(column), f"row + {column.number}")
            if is_list
            else Declare("const long long", str(column), f"row[{column.number}]")
            for column, is_list in part.columns()
        ]
        columns += [Declare("const double", c.name, f"a->constants[{c.column}]") for c in part.constants()]
        loops = [(loop, merged.width) for loop, merged in zip(self._varying(part), part.loops)]
        rounds = part.rounds.text(0, self.nests.listed)
        written = self.nests.write_rounds(str(at), loops, rounds)
        if not columns:
            return [title, *written]
        (only,) = written if len(written) == 1 else (None,)
        return [title, Block([*columns, *(only.body if isinstance(only, Block) else written)])]

    def _transposition(self, at: int, part: Rounds) -> list[Statement]:
        """The copy of a matrix that `merged/transpose.py` added, as a call; nothing if the part is another one."""
        loop = part.loops[0].loop
        source = loop.segments[0].operands[0]
        is_fixed = not any(number.varies for number in part.loops[0].numbers)
        if self.merged.areas.area_of(loop.target.base).name != AREA or not is_fixed or not isinstance(source, Access):
            return []
        outer = len(loop.counts) - 2
        strides = (*loop.target.lanes[outer:], *source.lanes[outer:])
        if part.rounds != Number(1, 1) or not all(isinstance(stride, int) for stride in strides):
            return []
        self.nests.named = self.nests.areas[str(at)] = set()
        (to, at_to), (of, at_of) = self.nests.place(loop.target.base), self.nests.place(source.base)
        places = (
            f"{to} + {affine(at_to, loop.target.lanes[:outer], (), self.nests.listed)}",
            f"{of} + {affine(at_of, source.lanes[:outer], (), self.nests.listed)}",
        )
        numbers = (*source.lanes[outer:], *loop.counts[outer:])
        body: list[Statement] = [
            Call("transpose", (places[0], str(loop.target.lanes[outer]), places[1], *map(str, numbers)))
        ]
        for name, count in reversed(list(zip(LANE_NAMES, loop.counts[:outer]))):
            body = [For(name, count, body)]
        return body

    def _varying(self, part: Rounds) -> list[Loop]:
        return [loop.varying(self.merged.areas, self.nests.listed) for loop in part.loops]

    # --- the rest of the units ---------------------------------------------------------------------------------------

    def _head(self) -> list[Item]:
        areas = self.merged.areas.areas
        fields = ", ".join(f"*{area.name}" for area in areas)
        return [
            Comment(
                f"The loops of {self.merged.table.graphs} graphs. A row of the table has the numbers of one graph."
            ),
            Define("LANES", self.form.width),
            libm(self.nests.calls),
            Include("rerolled/emit/vectors.h"),
            *self.nests.instead_of_libm(),
            Include("rerolled/emit/merged.h"),
            Include("rerolled/emit/transpose.h"),
            Declarations((f"struct areas {{ double {fields}; const int *row; const double *constants; }};",)),
            Declarations(self.nests.declared_tables()),
        ]

    def _end(self, passes: dict[str, list[Function]]) -> Iterator[Item]:
        merged, table = self.merged, self.merged.table
        yield from map(Include, ("kernel/kernel.h", "kernel/rows.h", "kernel/set_input.c"))
        yield Declarations(_table("int", "rows", [list(map(str, row)) for row in table.rows]))
        yield Declarations(_table("double", "constants", [[number(x)[0] for x in row] for row in table.doubles]))
        gaps = ", ".join(map(str, [*merged.order.gaps, 0]))  # C has no empty arrays
        yield Declarations((f"static const int gaps[] = {{{gaps}}};",))
        start = 0
        for area in merged.areas.areas:
            if area.name not in DIRECT:
                yield Define(area.name.upper(), start)
                start += area.stop - area.start
        loss = merged.loss.base
        place = f"a.row[{loss.number}]" if isinstance(loss, Column) else str(loss)
        yield Define("LOSS", f"a.{merged.loss_area}[{place}]")
        yield Define("GAPS", len(merged.order.gaps))
        for name, pieces in passes.items():
            yield Function("static void", f"run_{name}", _PIECE, [Call(piece.name, ("a",)) for piece in pieces])
        yield Include("rerolled/emit/merged.c")
        graphs = range(table.graphs)
        yield Declarations([f"PASSES({graph})" for graph in graphs])
        pairs = ", ".join(f"{{forward_{graph}, backward_{graph}}}" for graph in graphs)
        yield Declarations([f"static const struct passes passes[] = {{{pairs}}};"])
        result = [Return("passes + graph")]
        yield Function("const struct passes *", "passes_of", ("long long graph",), result)


class _Abstract:
    """A part with names in place of its columns and places."""

    def __init__(self, part: Rounds, areas: Step, nests: Nests) -> None:
        self.arguments: list[str] = []
        """In a piece of the C."""
        self._parameters: list[str] = []
        self._columns: dict[Part, str] = {}
        loops = [
            (merged.varying(areas, nests.listed, partial(self._name, merged)), merged.width) for merged in part.loops
        ]
        rounds = part.rounds.text(0, nests.listed, partial(self._name, None, False))
        self._body = nests.write_rounds("", loops, rounds)
        constants = [Declare("const double", c.name, f"a->constants[{c.column}]") for c in part.constants()]
        self._first = [*_pointers(nests.areas[""]), *constants]
        self.text = "\n".join([*map(str, constants), *self._parameters, *print_statements(self._body)])

    def _name(self, merged: Optional[MergedLoop], is_place: bool, part: Part) -> str:
        """A parameter for a column, or for the base of a place; any other number as it is."""
        if isinstance(part, int) and not is_place:
            return str(part)
        if part in self._columns and not is_place:
            return self._columns[part]
        name = f"n{len(self.arguments)}"
        if not isinstance(part, Column):
            argument, kind = str(part), "long long "
        elif merged and any(part == number.listed for number in merged.numbers):
            argument, kind = f"a->row + {part.number}", "const int *"
        else:
            argument, kind = f"a->row[{part.number}]", "long long "
        self.arguments.append(argument)
        self._parameters.append(f"{kind}{name}")
        if not is_place:
            self._columns[part] = name
        return name

    def function(self, name: str) -> Function:
        """The function that runs the part."""
        return Function("PIECE void", name, (*_PIECE, *self._parameters), [*self._first, *self._body])


def _pointers(areas: set[str]) -> list[Statement]:
    return [Declare("double *const", name, f"a->{name}") for name in sorted(areas)]


_PHASES = {"forward": (Phase.FORWARD,), "backward": (Phase.BACKWARD, Phase.SINK)}


def _table(type_: str, name: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a constant table. Each row ends with a spare 0, because C has no empty arrays."""
    lines = [f"static const {type_} {name}[][{len(rows[0]) + 1}] = {{"]
    for row in rows:
        first, *others = textwrap.wrap(", ".join([*row, "0"]), COLUMNS - 6)
        lines += [f"    {{{first}", *(f"     {line}" for line in others)]
        lines[-1] += "},"
    return [*lines, "};"]
