"""Rules that decide whether a published claim holds: profiles of one interpreter and workload -> a finding.

A judge says what it saw in figures of the profiles; knowledge of an interpreter's insides is only used to explain a
figure, never to decide. A file holds the judges of one kind of profile: lines, symbols, the interpreters' own accounts,
steps, memory.
"""
