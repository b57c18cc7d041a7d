"""A kernel whose code depends on the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from zoomgrad.engines.kernel.program import Buffers, Kernel, Stretch


class Variant(NamedTuple):
    """Code of a kernel that is fast for some batches."""

    name: str
    from_batch: int
    """The smallest batch that this variant serves. The next variant takes over at its own `from_batch`."""
    code: Any

    def __str__(self) -> str:
        return f"{self.name}, for batches from {self.from_batch} up"


def variant_for(batch: int, variants: Sequence[Variant]) -> Variant:
    """The variant to train with that batch."""
    return next((variant for variant in reversed(variants) if variant.from_batch <= batch), variants[0])


class Variants:
    """A Kernel in several variants. Each is built when a batch first needs it, because a program may never need it.

    All variants have the same workspace, buffers and bits. Calls other than `train` go to the one that was built first.
    """

    def __init__(
        self, variants: Sequence[Variant], first: Variant, kernel: Kernel, build: Callable[[Variant], Kernel]
    ) -> None:
        """Take the first variant's kernel. build: builds that of another variant."""
        self._variants = variants
        self._build = build
        self._first = first
        self._kernels = {first.name: kernel}
        self.workspace, self.set_input, self.forward = kernel.workspace, kernel.set_input, kernel.forward
        self.backward, self.bind, self.update = kernel.backward, kernel.bind, kernel.update

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        # Forward passes and empty stretches run in every variant.
        needs_its_own = stretch.learns and stretch.steps
        variant = variant_for(stretch.batch, self._variants) if needs_its_own else self._first
        if variant.name not in self._kernels:
            self._kernels[variant.name] = self._build(variant)
        return self._kernels[variant.name].train(buffers, stretch)
