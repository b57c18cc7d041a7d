"""Sizes and loss of a network -> C: macros, then `mlp.c`.

The sizes are macros, so that loops have constant lengths. The text includes no headers and needs only libm.
"""

from __future__ import annotations

from zoomgrad.engines.api import Network
from zoomgrad.engines.kernel.c_tree import Define, Include, Item, unit

LANES = 8
"""Doubles in the widest register. The size of a block of neurons is a multiple of it."""

WIDTHS = {"__AVX512F__": 8, "__AVX__": 4}
"""A compiler's macro -> doubles in the widest vector, as in the C."""

MOST_REGISTERS = 7
"""Maximum number of LANES-wide vectors for a block's sums. On AVX each takes two of the 16 registers; the input and the
product take the other two."""


def mlp_source(network: Network, *, sparse: bool) -> str:
    """The C of a network. sparse: the first layer visits only inputs that are not 0."""
    inputs, hidden, outputs = network.shape
    macros = {
        "INPUTS": inputs,
        "HIDDEN": hidden,
        "OUTPUTS": outputs,
        "HIDDEN_BLOCKS": _blocks(hidden),
        "HIDDEN_BLOCK": _block(hidden),
        "OUTPUT_BLOCKS": _blocks(outputs),
        "OUTPUT_BLOCK": _block(outputs),
        "WORKSPACE": workspace(network),
        "CROSS_ENTROPY": int(network.loss == "cross_entropy"),
        "SPARSE": int(sparse),
    }
    items: list[Item] = [Define(name, number) for name, number in macros.items()]
    items += map(Include, ("kernel/kernel.h", "kernel/rows.h", "kernel/training.h"))
    items += map(Include, ("handwritten/mlp.c", "kernel/train.c"))
    return unit(items)


def workspace(network: Network) -> int:
    """Doubles that `struct network` needs for any alignment of w. The C checks that they suffice."""
    inputs, hidden, outputs = network.shape
    hidden_lanes, output_lanes = (_blocks(neurons) * _block(neurons) for neurons in (hidden, outputs))
    parameters = (inputs + 1) * hidden_lanes + (hidden + 1) * output_lanes
    vectors = (outputs + 2) * hidden_lanes + 2 * output_lanes
    scalars = 3 * inputs + 5 * outputs + 8 * LANES
    return 2 * parameters + vectors + scalars + 2 * LANES


def _blocks(neurons: int) -> int:
    """The number of equal blocks for a layer's neurons, such that the sums of a block fit into registers."""
    return -(-neurons // (LANES * MOST_REGISTERS))


def _block(neurons: int) -> int:
    """The number of lanes in each block."""
    return LANES * -(-neurons // (LANES * _blocks(neurons)))
