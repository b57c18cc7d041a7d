"""What outlives a process: parameters in files, and Programs as recipes.

A file of parameters can come from anybody: reading it runs nothing. A recipe is a pickle, and as safe as its source.
"""
