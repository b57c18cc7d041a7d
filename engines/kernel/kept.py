"""Builds that no graph changes, such as Value in C: kept for later processes, and verified before they are loaded.

Loading an object runs its constructors, and a truncated one kills the process by SIGBUS. So it is used only under the
rules of `engines.files`. The file may change later, so we load a private copy of the verified bytes. If a check fails,
the object is built again. What is compiled from a graph is never kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import struct
import warnings
from collections.abc import Iterator, Sequence
from time import perf_counter

from zoomgrad.engines import files
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel.building import Built, private_folder, write

MOST_BYTES = 256 << 20
"""Of an object, and of all in a folder."""
_SECONDS = struct.Struct("<d")
"""How long the build took, before the object's bytes."""


@contextlib.contextmanager
def kept(name: str, recipe: Sequence[str], make: contextlib.AbstractContextManager[Built]) -> Iterator[Built]:
    """The object of that recipe in the user's cache; if there is none, a new one. It is removed at the block's end.

    name: the folder in the cache. recipe: everything that the object depends on. Its first part is lower-case letters,
    which begin the file's name. make: builds the object, which is kept if the block ends without an exception, so if it
    could be loaded.
    """
    folder = files.cache_folder(name)
    digest = hashlib.sha256("\0".join(recipe).encode(errors="surrogateescape"))  # a path may be undecodable
    file = f"{recipe[0]}-{digest.hexdigest()[:32]}"
    content = None
    try:
        content = files.get(folder, file, MOST_BYTES) if folder else None
    except (Unavailable, files.Unsound) as why:
        warnings.warn(f"{folder}/{file} is not used ({why}): building it again", stacklevel=3)
    if content is not None:
        with private_folder() as private:
            path = private / "program.so"
            write(path, content[_SECONDS.size :])
            yield Built(path, len(content) - _SECONDS.size, *_SECONDS.unpack_from(content))
        return
    start = perf_counter()
    with make as built:
        seconds = _SECONDS.pack(perf_counter() - start)
        yield built
        if folder:
            with contextlib.suppress(OSError, Unavailable):
                files.put(folder, file, seconds, built.path.read_bytes(), most_bytes=MOST_BYTES)
