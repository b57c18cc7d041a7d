"""Step -> machine code for x86-64, without a compiler.

The stages, in order and one per file: `nest` writes a run of a routine as loops over lanes, `block` and `across` write
the sums inside them, `lines` writes straight lines instead, `section` writes the statements around the routines,
`buffers` writes what kernel.h declares around the sections, `program` makes all that a Kernel, and `memory` makes the
bytes executable. `encode` is the assembler that they write to, `registers` gives out registers, `expression` and `libm`
evaluate a term, `lists` lists the inputs that are not 0.0, and `target` says what processor and which words of memory
the code is for.
"""
