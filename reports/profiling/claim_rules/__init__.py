"""Rules that decide whether a published claim holds: profiles of one interpreter and workload -> a finding.

A rule decides by figures of the profiles alone; knowledge of an interpreter's insides only explains a figure. Each file
holds the rules about one kind of profile: lines, symbols, the interpreters' own accounts, compilers, steps, memory.
"""
