"""Shape of the code: the modules of each folder and the longest import chain of each top-level package.

`python -m tests.structure [CHECKOUT]` prints both. A package's number of levels is the number of modules in that chain.
Imports inside functions do not count, and a cycle counts once.
"""

import ast
import sys
from pathlib import Path

PACKAGES = ("zoomgrad", "engines", "datasets", "results", "reports", "harness")
MOST_MODULES = 14


def folders(root):
    """Package folder -> its modules, `__init__` included."""
    found = {}
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            found.setdefault(file.parent.relative_to(root), []).append(file.stem)
    return found


def imports(root, package):
    """Module -> the modules of the same package that it imports, by full name."""
    files = {}
    for file in sorted((root / package).rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return {name: [*_named(file, files.keys() - {name})] for name, file in files.items()}


def _named(file, known):
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = (f"{node.module}.{alias.name}" for alias in node.names)
            names = [name if name in known else node.module for name in inside]
        else:
            continue
        yield from sorted(known.intersection(names))


def longest_chain(graph, start, above=(), done=None):
    """Return the longest import chain that starts at a module; `done` caches results."""
    done = {} if done is None else done
    if start not in done:
        below = [longest_chain(graph, name, (*above, start), done) for name in graph[start] if name not in above]
        done[start] = [start, *max(below, key=len, default=[])]
    return done[start]


if __name__ == "__main__":
    ROOT = Path([*sys.argv, "."][1])
    for folder, modules in folders(ROOT).items():
        print(f"{len(modules):3} {folder}")
    for package in PACKAGES:
        graph = imports(ROOT, package)
        chain = max((longest_chain(graph, name) for name in graph), key=len)
        print(f"{package}: {len(graph)} modules, {len(chain)} levels: {' > '.join(chain)}")
