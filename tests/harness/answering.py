"""One `zoomgrad` process that runs many commands, because starting a process for each takes seconds of imports.

`python -m tests.harness.answering` reads a JSON list of arguments per line and writes a JSON object per line:
`returncode`, `stdout` and `stderr` of that command and of all processes that it started. Commands share the process, so
use it only for those that keep nothing in memory: queries, usage errors, exports.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import traceback
from types import SimpleNamespace

STANDARD_OUTPUT, STANDARD_ERROR = 1, 2
SECONDS = 300
"""Time limit for a command."""


class Answering:
    """The caller's side of the shared process."""

    def __init__(self, **options):
        command = [sys.executable, "-m", "tests.harness.answering"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)

    def __call__(self, *arguments):
        """Run `zoomgrad` with these arguments; return its exit code and output, as `subprocess.run` would."""
        self._process.stdin.write(json.dumps([str(argument) for argument in arguments]) + "\n")
        self._process.stdin.flush()
        command = f"zoomgrad {' '.join(map(str, arguments))}"
        if not select.select([self._process.stdout], [], [], SECONDS)[0]:
            self._process.kill()
            raise AssertionError(f"`{command}` took longer than {SECONDS} s")
        line = self._process.stdout.readline()
        assert line, f"the shared zoomgrad process exited while running `{command}`"
        return SimpleNamespace(**json.loads(line))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


@contextlib.contextmanager
def captured(descriptor, stream):
    """Yield a file that receives everything written to the descriptor, also by processes started meanwhile."""
    kept = os.dup(descriptor)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        os.dup2(file.fileno(), descriptor)
        try:
            yield file
        finally:
            stream.flush()
            os.dup2(kept, descriptor)
            os.close(kept)


def answer(arguments):
    """Run one command in this process."""
    from zoomgrad.harness.cli import main

    # Help names the program after the module that was started.
    sys.modules["__main__"].__package__ = "zoomgrad"
    sys.argv = ["__main__.py", *arguments]
    with captured(STANDARD_OUTPUT, sys.stdout) as out, captured(STANDARD_ERROR, sys.stderr) as err:
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
            if not isinstance(code, int):  # Python prints such a code and exits with 1
                print(code, file=sys.stderr)
                code = 1
        except BaseException:
            traceback.print_exc()  # as Python does before it exits
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read())
    return {"returncode": code, "stdout": texts[0], "stderr": texts[1]}


def main():
    """Answer commands until the input ends."""
    # Commands must not read the questions, and their output must not mix with the answers.
    questions, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(STANDARD_OUTPUT), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, STANDARD_OUTPUT)
    for line in questions:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
