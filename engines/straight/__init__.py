"""Straight-line back ends: every row of the tape becomes its own statement or instruction.

tape -> lower -> Code -> instructions | machine code   (bytecode, machine.lines)
                      -> pieces -> Python | C          (python_source, c_source)
tape -> C, a line for each row                         (published)
"""
