"""Rules that decide whether a published claim holds, one file per kind of profile: each maps the profiles of one
interpreter and workload to a finding. The claims themselves, with the rule for each, are in
reports/profiling/published_claims.py.

A rule decides by the profiles' figures alone; knowledge of an interpreter's internals only explains a figure.
"""
