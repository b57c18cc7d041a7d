"""Program -> facts about it as a Python. It may be any program, so its time is limited and its answer validated.

`engines.answers` remembers the answer of a program with machine code of its own until its file changes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, StringConstraints, ValidationError

from zoomgrad.engines.answers import MEMORY
from zoomgrad.engines.asking import NoAnswer, ask, one_line, unusable
from zoomgrad.results.files import first_of

PROBE_SECONDS = 10.0

_PROBE = """
import json, os, platform, shlex, sys, sysconfig
config = sysconfig.get_config_var
print(json.dumps({
    "implementation": sys.implementation.name,
    "version": ".".join(str(part) for part in sys.version_info[:3]) + {"final": ""}.get(sys.version_info[3],
        sys.version_info[3][:1] + str(sys.version_info[4])),
    "full_version": " ".join(sys.version.split()),
    "free_threaded": bool(config("Py_GIL_DISABLED")),
    # A build may contain the JIT and leave it off until PYTHON_JIT=1, as those of uv do. 3.14 is the first to tell.
    "jit": hasattr(sys, "_jit") and sys._jit.is_available(),
    "virtual": sys.prefix != sys.base_prefix,
    "build": {
        "compiler": " ".join(platform.python_compiler().split()),
        # Without flags that hold paths: they do not affect how it runs, and are private.
        "configure": " ".join(flag for flag in shlex.split(config("CONFIG_ARGS") or "") if "/" not in flag),
        "cflags": " ".join((config("PY_CFLAGS") or config("CFLAGS") or "").split()),
        "debug": str(bool(config("Py_DEBUG"))),
    },
}))
"""


Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
Version = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,4}(\.[0-9]{1,4}){2}([a-z][0-9]{1,4})?$")]
Line = Annotated[str, StringConstraints(max_length=10_000), AfterValidator(lambda text: one_line(text, 10_000))]


class Facts(BaseModel, strict=True):
    """A program's answer to `_PROBE`, validated because any program may answer anything."""

    implementation: Word
    version: Version
    full_version: Line
    free_threaded: bool
    jit: bool
    """Whether CPython's own just-in-time compiler is in the build, on or off."""
    virtual: bool
    build: dict[Literal["compiler", "configure", "cflags", "debug"], Line]


def probe(path: Path) -> Facts | NoAnswer:
    """Facts about the program, or the reason why it is not a usable interpreter."""
    reason = unusable(str(path))
    if reason:
        return NoAnswer(reason)
    try:
        return Facts.model_validate_json(
            MEMORY.answer(
                [str(path)],
                _PROBE,
                _are_facts,
                lambda: ask([str(path), "-I", "-c", _PROBE], seconds=PROBE_SECONDS, errors=False),
            )
        )
    except NoAnswer as none:
        return none
    except ValidationError as error:
        return NoAnswer(f"does not answer like a Python ({one_line(first_of(error, whole='its answer'))})")


def _are_facts(answer: object) -> bool:
    try:
        return isinstance(answer, str) and bool(Facts.model_validate_json(answer))
    except ValidationError:
        return False
