"""Families of recovered loops in C: one kernel for all graphs, where their loops can be merged (`merged/`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, Optional

from zoomgrad.engines.api import Shape, Store, Workload
from zoomgrad.engines.columns import columns
from zoomgrad.engines.families.trainer import NONE, Built
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.kernel.c_engine import CEngine, digest, may_be_kept, name_of
from zoomgrad.engines.kernel.engine import Clock, Family, Order
from zoomgrad.engines.kernel.library import Library
from zoomgrad.engines.rerolled.engine import Rerolled
from zoomgrad.engines.rerolled.lowering import Lowered, lower_graphs
from zoomgrad.engines.rerolled.merged.merge import Merged, merge
from zoomgrad.engines.rerolled.merged.places import Unmergeable

BEFORE_MERGING = ("zeros skipped",)
"""Rearrangements to make before merging. If one of them applies, each graph gets its own kernel."""


class Traced(NamedTuple):
    """The graph of a shape, and how long its own stages took."""

    shape: Shape
    tape: Tape
    clock: Clock


class RerolledFamily(Rerolled, CEngine):
    """An engine that compiles the graphs of a family together."""

    def family(self, workload: Workload, shapes: Sequence[Shape], objects: Optional[Store]) -> Family:
        """One kernel for all graphs; or a kernel for each, if they can't be merged."""
        if len(shapes) == 1:
            return super().family(workload, shapes, objects)
        traced: list[Traced] = []
        parameters: list[float] = []
        for shape in shapes:
            clock = Clock()
            tape, _, parameters = self._record(clock, workload, workload.row(shape.rows[0]))
            clock.sizes["tape_rows"] = len(tape)
            clock.stop()
            traced.append(Traced(shape, tape, clock))
        order = self._order_of_family(traced, objects)
        whole = Clock()
        try:
            kernel, places = self._kept_family(traced, whole, order) or self._built_family(traced, whole, order)
        except Unmergeable:
            return self._apart(workload, traced, whole, objects)
        whole.stop()
        members = []
        for graph, (shape, tape, clock) in enumerate(traced):
            checked = shape._replace(columns=columns(shape.columns, tape.inputs))
            # A race that loads a kept object has no compile times.
            seconds = sum(clock.phases.values()) if whole.phases else 0.0
            members.append(Built(checked, kernel.of_graph(graph), len(tape.outputs), seconds))
        return Family(members, places, [0.0 if index == NONE else parameters[index] for index in places], whole)

    def _apart(self, workload: Workload, traced: Sequence[Traced], clock: Clock, objects: Optional[Store]) -> Family:
        """A kernel for each graph. The time of the attempt to merge them counts."""
        clock.stop()
        shapes = [shape for shape, *_ in traced]
        found = super().family(workload, shapes, objects)
        for each in (clock, *(clock for *_, clock in traced)):
            for phase, seconds in each.phases.items():
                found.clock.phases[phase] += seconds
        return found

    def merged(self, workload: Workload) -> Merged:
        """The loops of all of a workload's graphs. Raises Unmergeable."""
        shapes = sorted(workload.shapes(), key=lambda shape: len(shape.columns))
        return self._merge(
            self._lowered([self._record(Clock(), workload, workload.row(shape.rows[0]))[0] for shape in shapes])
        )

    def _lowered(self, tapes: Sequence[Tape]) -> list[Lowered]:
        return lower_graphs(self.form_of_passes(BEFORE_MERGING), tapes)

    def _merge(self, graphs: Sequence[Lowered]) -> Merged:
        return merge([step for step, _ in graphs], has_vectors=self.form.width > 1)

    def _built_family(self, traced: Sequence[Traced], clock: Clock, order: Order) -> tuple[Library, list[int]]:
        """The kernel of all graphs, and the order of its parameters. Raises Unmergeable."""
        with clock.phase("lower"):
            found = self._lowered([tape for _, tape, _ in traced])
            merged = self._merge(found)
        # Before the build, which decides by the time of all phases whether its object is worth keeping.
        clock.stop()
        for (_, _, of_graph), (step, seconds) in zip(traced, found):
            of_graph.sizes.update(self.sizes(step))
            clock.add(of_graph)
            # Only now, as the clock of all graphs has this time already.
            of_graph.phases["lower"] += seconds
        places = merged.order.parameters
        kernel = self._build(merged, clock, order, facts={"order": places})
        assert isinstance(kernel, Library)
        return kernel, places

    def _kept_family(self, traced: Sequence[Traced], clock: Clock, order: Order) -> Optional[tuple[Library, list[int]]]:
        """The kernel that a user's cache keeps for these graphs; None if there is none."""
        if not order.name or not may_be_kept(order.objects):
            return None
        assert order.objects
        with clock.phase("load"):
            found = self._kept(order.objects, order.name())
        clock.stop()
        if found is None:
            return None
        kernel, facts = found
        assert isinstance(kernel, Library)
        for *_, of_graph in traced:
            clock.add(of_graph)
        clock.sizes.update(facts["sizes"])
        return kernel, facts["order"]

    def _order_of_family(self, traced: Sequence[Traced], objects: Optional[Store]) -> Order:
        """How to build the kernel. A user's object is named by all graphs."""
        order = Order(objects, is_passes=True)
        if objects is None or objects.most_bytes is None:
            return order

        @cache
        def name() -> str:
            names = [self._name_of_graph(tape, (), order) for _, tape, _ in traced]
            return name_of(digest(names)) if all(names) else ""

        return order._replace(name=name)
