"""Loops recovered from the scalar tape: pull -> chain -> group -> lay out -> loops, and their back ends."""
