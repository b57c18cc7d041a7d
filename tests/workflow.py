"""Run a job of the workflow here: `python -m tests.workflow JOB FOLDER --set EXPRESSION=VALUE --skip WORD`.

It clones the checkout's HEAD into FOLDER, which must not exist, and executes the job's `run:` steps there with the
shell and the options that GitHub uses. Steps that use actions are listed. `--skip` leaves out steps that contain a
word, such as `sudo`; `--replace OLD=NEW` changes a step, for example to a smaller budget. Needs PyYAML, which the
environment of `tox -e lint` has. To try the comparison of a pull request:

    python -m tests.workflow speed FOLDER --skip sudo --replace "--budget 30m=--budget 30s" \\
        --set github.event.pull_request.base.sha=HEAD~1 --set github.event.pull_request.head.sha=HEAD
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from zoomgrad.results.places import ROOT

WORKFLOW = ".github/workflows/ci.yml"
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")


def filled(text, values):
    """The text with its expressions replaced. Raises KeyError for one without a value."""
    return EXPRESSION.sub(lambda found: values[found[1]], str(text))


def pair(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text}: write NAME=VALUE")
    return name, value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", type=pair, action="append", default=[])
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("--replace", type=pair, action="append", default=[])
    asked = parser.parse_args()
    jobs = yaml.safe_load((ROOT / WORKFLOW).read_text())["jobs"]
    loose = [
        step["uses"]
        for job in jobs.values()
        for step in job["steps"]
        if "uses" in step and not PINNED.fullmatch(step["uses"])
    ]
    if loose:
        sys.exit(f"not pinned by hash: {', '.join(loose)}")
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(asked.folder)], check=True)
    summary = asked.folder.absolute().with_name(f"{asked.folder.name}-summary.md")
    summary.touch()
    values = {"runner.os": "Linux", **dict(asked.set)}
    job = jobs[asked.job]
    environment = {**os.environ, "CI": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    environment |= {name: filled(value, values) for name, value in job.get("env", {}).items()}
    failed = []
    for step in job["steps"]:
        command = step.get("run")
        if command is None or any(word in command for word in asked.skip):
            print(f"-- skipped: {step.get('uses') or command}", flush=True)
            continue
        if failed and "always()" not in step.get("if", ""):
            continue
        for old, new in asked.replace:
            command = command.replace(old, new)
        command = filled(command, values)
        print(f"$ {command}", flush=True)
        done = subprocess.run([*SHELL, command], cwd=asked.folder, env=environment, check=False)
        if done.returncode:
            failed.append(command)
            print(f"-- exit code {done.returncode}", flush=True)
    print(f"-- summary:\n{summary.read_text()}")
    sys.exit(f"failed: {failed[0]}" if failed else 0)


if __name__ == "__main__":
    main()
