"""Programs in the style of the micrograd literature, run on every Value class; each `.txt` is an expected output.

The first line of a program names the text whose API it uses; the code is this project's own. `python -m
tests.literature` prints a table of programs and engines. Tests of single operations are in tests/engines.
"""
