"""Peers: what a reader would use instead of zoomgrad. NumPy by hand, and libraries, used as their manuals show.

A peer trains the same MLP from the same parameters on the same bytes in the same order, a batch at a time. It does not
promise the reference's bits, but an error bound. Peers are shown for comparison and have no rank. Each imports
its library in `check` or later, and nothing else imports it.
"""
