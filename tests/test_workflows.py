"""GitHub's workflows: actions are pinned, a pull request is compared, and a release fits its tag and the changelog."""

import os
import re
import subprocess
import tomllib

import pytest

from zoomgrad.harness.cli.commands.compare import ENGINES, WORKLOADS
from zoomgrad.results.places import ROOT

CI, RELEASE = (
    (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8") for name in ("ci.yml", "release.yml")
)
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def test_every_action_is_pinned_by_hash_and_names_its_version():
    for each in re.findall(r"uses: (.*)", CI + RELEASE):
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each), each


def test_a_pull_request_is_compared_on_what_compare_measures_by_default():
    speed = CI[CI.index("  speed:") : CI.index("  history:")]
    assert f"--workloads {','.join(WORKLOADS)} --engines {','.join(ENGINES)} " in speed
    assert "pull_request.head.sha" in speed


def test_the_changelog_has_a_section_of_the_version_and_one_of_what_is_next():
    assert re.findall(r"(?m)^## \[(.+)\]", CHANGELOG)[:2] == ["Unreleased", VERSION]


def test_the_tags_name_reaches_the_shell_as_a_variable_only():
    for line in RELEASE.splitlines():
        assert "${{" not in line or re.fullmatch(r" +(TAG|GH_TOKEN): \$\{\{ github\.(ref_name|token) \}\}", line), line


@pytest.mark.parametrize(("tag", "code"), [(f"v{VERSION}", 0), ("v99.0.0", 1), ("v$(touch hacked)", 1)])
def test_the_check_of_the_tag(tmp_path, tag, code):
    (script,) = re.findall(r"(?s)name: The tag is the version.*?run: \|\n(.*?)\n      - ", RELEASE)
    for name in ("pyproject.toml", "CHANGELOG.md"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    command = ["bash", "-e", "-c", re.sub(r"(?m)^ {10}", "", script)]
    environment = {"PATH": os.environ["PATH"], "TAG": tag}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    message = f"the tag is {tag}, and pyproject.toml has {VERSION}" if code else ""
    assert (done.returncode, done.stderr.strip()) == (code, message)
    assert not (tmp_path / "hacked").exists()
    assert code or "loops that are recovered" in (tmp_path / "notes.md").read_text()
