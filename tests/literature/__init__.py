"""Programs in the style of the micrograd literature, which run on every Value class, and their outputs (`.txt`).

Tests of single operations are not here but in tests/engines. The first line of a program names the text whose API it
uses; the code is this project's own.
"""
