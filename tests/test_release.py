"""The release workflow and the changelog fit each other and the project's version."""

import os
import re
import subprocess
import tomllib

import pytest

from tests.test_readme import ROOT

WORKFLOW = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def test_the_changelog_has_a_section_of_the_version_and_one_of_what_is_next():
    assert re.findall(r"(?m)^## \[(.+)\]", CHANGELOG)[:2] == ["Unreleased", VERSION]


def test_the_tags_name_reaches_the_shell_as_a_variable_only():
    for line in WORKFLOW.splitlines():
        assert "${{" not in line or re.fullmatch(r" +(TAG|GH_TOKEN): \$\{\{ github\.(ref_name|token) \}\}", line), line


@pytest.mark.parametrize(
    ("tag", "code", "message"),
    [
        (f"v{VERSION}", 0, ""),
        ("v99.0.0", 1, f"the tag is v99.0.0, and pyproject.toml has {VERSION}"),
        ("v$(touch hacked)", 1, f"the tag is v$(touch hacked), and pyproject.toml has {VERSION}"),
    ],
)
def test_the_check_of_the_tag(tmp_path, tag, code, message):
    (script,) = re.findall(r"(?s)name: The tag is the version.*?run: \|\n(.*?)\n      - ", WORKFLOW)
    for name in ("pyproject.toml", "CHANGELOG.md"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    done = subprocess.run(
        ["bash", "-e", "-c", re.sub(r"(?m)^ {10}", "", script)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "TAG": tag},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (code, message)
    assert not (tmp_path / "hacked").exists()
    if not code:
        assert "loops that are recovered" in (tmp_path / "notes.md").read_text()
