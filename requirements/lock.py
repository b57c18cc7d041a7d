"""Resolves every lock file from pyproject.toml: `tox -e lock`, or `tox -e lock -- --upgrade`.

A lock is universal (every Python from its oldest on, CPython and PyPy), carries hashes and names no index, so that it
installs from whichever mirror the user has. Two things keep it small. A lock names the one that it adds to with `-r`,
and leaves out what is there. And it has no hashes of wheels for platforms that zoomgrad is not tested near (RARE):
there, a package is built from its source, whose hash is always in.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from uv import find_uv_bin

# Lock -> (oldest Python, extra, the lock it adds to). Workers run under every interpreter, everything else under
# CPython 3.11+.
LOCKS = {
    "worker": ("3.9", None, None),
    "profile-worker": ("3.9", "profile", "worker"),
    "test-worker": ("3.9", "test-worker", "worker"),
    "bench": ("3.11", "bench", None),
    "fleet": ("3.11", "fleet", "bench"),
    "test": ("3.11", "test", "fleet"),
    "lint": ("3.11", "lint", "test"),
}
# A peer's lock -> (oldest Python, its libraries). They pin versions without hashes, because a version of PyTorch has
# several builds, and name nothing of CUDA, which not all of these need. uv checks the hashes of what it then installs.
PEERS = {
    "peers-jax-worker": ("3.12", "jax"),
    "peers-torch-worker": ("3.11", "torch"),
    "peers-scalar-worker": ("3.11", "casadi\nheyoka"),
}
# A lock with programs -> their package. It has the hashes of its wheels for Linux with glibc, and is for no Python.
PROGRAMS = {"clang": "ziglang"}
CUDA = re.compile(r"^(cuda|nvidia|triton)")
RARE = re.compile(
    r"^(?!.*manylinux).*musllinux|win32|win_amd64|win_arm64|macosx_\d+_\d+_x86_64|i686|armv7l|ppc64le|s390x|riscv64|loongarch64"
    r"|ios_|android_|emscripten|pyodide|wasm32|-cp3[5-8]-(?!abi3)|-pp3[78]"
)
HERE = Path(__file__).parent
WORKERS = HERE.parent / "harness" / "machine" / "requirements"


def path(lock):
    """Where the lock is. Those of workers belong to the harness, which makes environments from them."""
    return (WORKERS if lock.endswith("worker") or lock in PROGRAMS else HERE) / f"{lock}.lock"


def resolve(oldest, extra, output, *options):
    """Have uv write a lock, starting from what is there."""
    command = [find_uv_bin(), "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-emit-index-url"]
    command += ["--no-header", f"--python-version={oldest}", f"--override={HERE / 'overrides.txt'}"]
    command += [f"--extra={extra}"] if extra else []
    command += [*options, "pyproject.toml", f"--output-file={output}"]
    subprocess.run(command, cwd=HERE.parent, check=True)  # noqa: S603  (a list of arguments)


def resolve_peer(oldest, libraries, output, *options):
    """Write the lock of the libraries of peers and what they need, over the packages of all workers."""
    command = [find_uv_bin(), "pip", "compile", "--quiet", "--universal", "--no-emit-index-url", "--no-header"]
    command += ["--no-annotate", f"--python-version={oldest}", f"--constraint={path('worker')}", *options, "-"]
    command += [f"--output-file={output}"]
    subprocess.run(command, input=libraries, text=True, check=True)  # noqa: S603  (a list of arguments)
    worker = {line.split(" ")[0] for line in path("worker").read_text().splitlines()}
    found = output.read_text().splitlines()
    return [line for line in found if not CUDA.match(line) and line.split(" ")[0] not in worker]


def resolve_program(package, folder, *options):
    """The lock of a package with programs."""
    output = Path(folder) / "pylock.program.toml"
    command = [find_uv_bin(), "pip", "compile", "--quiet", "--universal", "--no-header", "--format=pylock.toml"]
    command += ["--python-version=3.11", *options, "-", f"--output-file={output}"]
    subprocess.run(command, input=package, text=True, check=True)  # noqa: S603  (a list of arguments)
    (found,) = tomllib.loads(output.read_text())["packages"]
    wheels = {wheel["url"].rpartition("/")[2]: wheel["hashes"]["sha256"] for wheel in found["wheels"]}
    usual = [digest for name, digest in wheels.items() if re.search(r"manylinux\w*_(x86_64|aarch64)", name)]
    return (
        " \\\n".join([f"{package}=={found['version']}", *(f"    --hash=sha256:{one}" for one in sorted(usual))]) + "\n"
    )


def packages(text):
    """Each package's lines: its pin, its hashes, and the comment that says what wants it."""
    return re.split(r"(?m)^(?=\w)", text)[1:]


def pinned(lines):
    """A package's lines without the comment."""
    return re.sub(r"(?m)^ *#.*\n", "", lines)


def whole(lock):
    """The pins of a lock and of those it adds to."""
    _, _, base = LOCKS[lock]
    return {pinned(one) for one in packages(path(lock).read_text())} | (whole(base) if base else set())


def files(folder, lock):
    """Hash -> name of every file that the lock may install."""
    oldest, extra, _ = LOCKS[lock]
    output = Path(folder) / f"pylock.{lock}.toml"
    resolve(oldest, extra, output, "--format=pylock.toml", f"--constraint={path(lock)}")
    found = tomllib.loads(output.read_text())["packages"]
    kept = [file for one in found for file in (*one.get("wheels", ()), one.get("sdist")) if file]
    return {file["hashes"]["sha256"]: file["url"].rpartition("/")[2] for file in kept}


def trimmed(lines, names):
    """A package without the hashes of wheels that are rare, or for no Python of the lock's."""
    head, *hashes = pinned(lines).rstrip().split(" \\\n")
    comment = "".join(re.findall(r"(?m)^ *#.*\n", lines))
    usual = [one for one in hashes if not RARE.search(names.get(one.rpartition(":")[2], "win32"))]
    return " \\\n".join([head, *usual]) + "\n" + comment


with tempfile.TemporaryDirectory() as folder:
    for lock, (oldest, extra, base) in LOCKS.items():
        # uv would keep the hashes that are there, even where others are wanted now.
        path(lock).write_text(re.sub(r" \\\n +--hash=\S+", "", path(lock).read_text()))
        resolve(oldest, extra, path(lock), *([f"--constraint={path(base)}"] if base else []), *sys.argv[1:])
        names = files(folder, lock)
        found = [trimmed(one, names) for one in packages(path(lock).read_text())]
        text = "".join(one for one in found if not base or pinned(one) not in whole(base))
        if base:
            # Environments go by a lock's text, so that it has to change with its base.
            digest = hashlib.sha256(path(base).read_bytes()).hexdigest()
            text = f"# {base}.lock {digest}\n-r {base}.lock\n{text}"
        path(lock).write_text(text)
    digest = hashlib.sha256(path("worker").read_bytes()).hexdigest()
    for lock, (oldest, libraries) in PEERS.items():
        lines = resolve_peer(oldest, libraries, path(lock), *sys.argv[1:])
        path(lock).write_text("\n".join([f"# worker.lock {digest}", "-r worker.lock", *lines, ""]))
    for lock, package in PROGRAMS.items():
        known = [f"--constraint={path(lock)}"] if path(lock).exists() and "--upgrade" not in sys.argv else []
        path(lock).write_text(resolve_program(package, folder, *known, *sys.argv[1:]))
