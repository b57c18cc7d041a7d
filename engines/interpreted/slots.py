"""`__slots__`: a Value without a dictionary."""

from zoomgrad.engines.interpreted.changed import changed

_FIRST, _SLOTS = '"""A scalar and its gradient."""\n', '("_backward", "_op", "_prev", "data", "grad", "label")'
TEXT = changed(f"{_FIRST}\n", f"{_FIRST}    __slots__ = {_SLOTS}\n", globals())
