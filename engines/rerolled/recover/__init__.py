"""Tape -> Loops: find the loops that a scalar graph was unrolled from. Training and back ends are not here.

The stages, in order and one per file, are `gradients`, `chains`, `fuse`, `groups` and `layout`. The first three produce
`sums`, the last one produces `loops`. `waves` orders the sums for `groups`, `nest` cuts sequences of addresses into
counted loops, and `check` checks loops. `places` and `lanes` serve `layout`.

The docstrings of the stages follow one example, two ReLU units over two inputs and the product of their results:

    (p0 + p1*x0 + p2*x1).relu() * (p3 + p4*x0 + p5*x1).relu()

`tape` is its tape, `show` prints the text form of its argument, and tests/engines/rerolled/test_stages.py runs all of
these examples:

    >>> show(tape)
    %0 = parameter 0
    %1 = parameter 1
    %2 = input 0
    %3 = * %1 %2
    %4 = + %0 %3
    %5 = parameter 2
    %6 = input 1
    %7 = * %5 %6
    %8 = + %4 %7
    %9 = ReLU %8
    %10 = parameter 3
    %11 = parameter 4
    %12 = * %11 %2
    %13 = + %10 %12
    %14 = parameter 5
    %15 = * %14 %6
    %16 = + %13 %15
    %17 = ReLU %16
    %18 = * %9 %17
    loss %18

Nineteen rows of tape and their gradients become six loops:

    >>> show(lay_out(fuse(chain(pull(tape))), group(fuse(chain(pull(tape))))))
    forward:
      0: for i<2: v[i] = p[i] + sum(t<2: p[2 + i + 2*t] * x[t])
      1: for i<2: v[2 + i] = (0.0 if v[i] < 0.0 else v[i])
      2: v[4] = v[2] * v[3]
    backward:
      3: for i<2: g[i] = (v[2 + i] > 0.0) * (v[3 - i] * 1.0)
    sink:
      4: for i<2 j<2: q[2 + 2*i + j] += x[i] * g[j]
      5: for i<2: q[i] += g[i]
    loss v[4]
    94.44% of 36 primitives in loops
"""
