"""Loops -> Step: the training step over recovered loops, as a program that can be printed and checked.

step      = routine* series* section*
routine   = name ":" run*
series    = "loops" numbers "in" n "rounds:" loop  consecutive loops that one nest runs: see series.py
run       = "loop" number how*                one loop of the listing
how       = "in place"                        a sink: p -= rate * sum, instead of q += sum
          | "over nonzero inputs"             its terms, or one of its lane counts, skip inputs that are 0.0
          | "for up to" n "rows"              for rows taken together: each has its own lanes, or its own term of a sink
          | "in strips"                       over weights that are stored strip by strip
          | "from lane" n                     over the last strip, which is wider than the others
          | ["copied"] "in tiles of" n        copies the inputs of a sink tile by tile, or reads these copies
          | "from a panel"                    tiles read a copy of a strip's lanes: see rearrange/from_panels.py
          | "transposed"                      copies a matrix, for later loops: see rearrange/transposed.py
          | "after its update"                p -= rate * (kept input * factor), just before each read of p
section   = ("forward" | "backward" | "enter" | "turn" | "together" | "evaluate" | "leave") ":" statement*
statement = "take" what | "give" what         between the caller's buffers and the workspace
          | "take row"                        the next row becomes the inputs
          | "take up to" n "rows to" place [", and list their inputs"]        the next rows of the batch, side by side
          | "run" routine
          | "guard" [", else:" statement*]    record the loss; if it is not finite, only the rows before count, and the
                                              stretch ends here
          | "next rate"                       the rate of the next update becomes the rate
          | "update" ["all but loop" n]       p -= rate * q / batch, then q = 0, for every parameter
          | "copy" place "<-" place ":" n
          | "set due" | "clear due"             whether an update waits for the next row
          | "measure weights" | "list every input" | "list inputs" | "turn lists" | "check factors"
                                              for skipping: see rearrange/zeros.py
          | "if" condition ":" statement* ["else:" statement*]
          | "for each row:" statement* | "for the last row:" statement*       of those taken together, in its own places
          | "divided by" ("rows" | "lanes") ":" statement*                    among threads, which meet at its end
condition = "due" | "alone" | "batch ends" | "every input of the first row counts" | "weights may be infinite"

`forward` and `backward` are single passes over one row, for callers. A stretch of training runs `enter`, then `turn`
until all steps are taken or a loss is not finite, then `leave`. If the step has `together`, that runs instead of `turn`
in batches of at least 2 rows. A stretch that does not learn runs `evaluate` instead. A row, or the rows taken together,
are *alone* if they are a whole batch and all gradients are zero; then no gradient needs to be kept.

Example: y = w * x has the loops `0: v[0] = p[0] * x[0]` and `1: q[0] += x[0] * 1.0`. The turn of its plain step is on
the left, and the result of `rearrange/in_place.py` on the right:

    turn:                                   turn:
      take row                                take row
      run values                              run values
      guard                                   guard
      run gradients                           run gradients
      run sinks                               if alone:
      if batch ends:                            next rate
        next rate                               run sinks in place
        update                                else:
                                                run sinks
                                                if batch ends:
                                                  next rate
                                                  update

`values` runs loop 0, `sinks` runs loop 1, and `sinks in place` runs `loop 1 in place`: p[0] -= rate * (x[0] * 1.0).
Back ends follow every section, and make no decisions.
"""
