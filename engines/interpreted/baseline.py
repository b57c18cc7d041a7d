"""micrograd as published: children in a set, a closure for every operation.

A set loses the order of the children and collapses a*a to one child, so gradients depend on addresses.
"""

from zoomgrad.engines.interpreted.changed import changed

changed("self._prev = _children", "self._prev = set(_children)", globals())
