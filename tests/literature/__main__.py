"""Print how each program's output compares with the expected one, by Value class: `python -m tests.literature`.

    same       the expected output, byte for byte
    doubles    the same numbers, but this engine stores ints as doubles, so 20 prints as 20.0
    refused    the program derives a class from Value, which this engine does not permit
    unordered  the same parts in another order: this engine keeps operands in a set

Exits with 1 if any program prints something else.
"""

from __future__ import annotations

import sys

import engines
from tests.engines.ladder import of_each_value
from tests.literature.run import outcome, printed, programs


def main() -> None:
    names = of_each_value()
    print(f"{'':<12}", *(f"{name:<11}" for name in names))
    failed = False
    columns = [printed(name) for name in names]
    for program in programs():
        found = [outcome(engines.load(name), program, column[program]) for name, column in zip(names, columns)]
        failed |= "differs" in found
        print(f"{program:<12}", *(f"{each:<11}" for each in found))
    print(f"{names[-1]} has the Value of every compiled engine.")
    sys.exit(failed)


if __name__ == "__main__":
    main()
