"""Engines that compile the tape: to a flat instruction array, to Python, to C.

tape -> lower -> Code -> instructions                  (bytecode)
                      -> pieces -> Python | C          (python_source, c_source)
tape -> C, a line for each row                          (published)
C -> toolchains -> a shared object -> library | extension
all of them -> Kernel -> Program -> Trainer
"""
