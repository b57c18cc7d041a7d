"""Sections on what compiling costs and what it makes: one file for each."""
