"""The workflow's text."""

import re

from zoomgrad.harness.cli.commands.compare import ENGINES, WORKLOADS
from zoomgrad.results.places import ROOT

TEXT = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")


def test_every_action_is_pinned_by_hash_and_names_its_version():
    used = re.findall(r"uses: (.*)", TEXT)
    assert used
    for each in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each), each


def test_a_pull_request_is_compared_on_what_compare_measures_by_default():
    speed = TEXT[TEXT.index("  speed:") : TEXT.index("  history:")]
    assert f"--workloads {','.join(WORKLOADS)} --engines {','.join(ENGINES)} " in speed
    assert "pull_request.head.sha" in speed
