"""Standalone builds: a workload or a script -> a folder that works without this project.

The C and the READMEs are made in `engines/standalone`.
"""
