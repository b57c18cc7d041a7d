"""The front end of compiled engines: op table, recording Value, tape, and their text forms.

Code generation is not here. `kernel`, `straight` and `rerolled` turn a tape into programs.
"""
