"""A valid run changed in one random place: it is refused with one clear error, or its report renders."""

import contextlib
import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reports import example_profiles
from zoomgrad.reports import build
from zoomgrad.reports.exports import EXPORTERS, Material, NoExport
from zoomgrad.reports.pages import html, markdown
from zoomgrad.results.files import Unreadable
from zoomgrad.results.store import Store

NUMBERS = (0, -1, 1, 0.5, 1e-320, 1e-12, 1e-9, 1e5, 1e6, 1e9, 1e300, 10**18, 2**63, math.inf, -math.inf, math.nan, True)
TEXTS = ("", "..", "a/b", "--", "\x1b[2J", "\u202e", "<script>", "x" * 20_000, "0001-01-01T00:00:00Z")
OTHERS = (None, [], {}, [[]], {"a": 1})
WRONG = (*NUMBERS, *TEXTS, *OTHERS)


def places(value, path=()):
    """Yield the paths of all values in a JSON document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


REMOVED = object()


def changed(value, path, new):
    """Return a copy of the document with the value at the end of the path replaced or removed."""
    copy = json.loads(json.dumps(value))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    if new is REMOVED:
        del inner[path[-1]]
    return copy


@pytest.fixture(scope="module")
def small(example, tmp_path_factory):
    """The JSON documents of a small run, by file path. The run has every kind of file that a folder may hold."""
    run = example.only(lambda cell: cell.workload == "mnist" and cell.interpreter != "cpython-3.11")
    store = run.stored(tmp_path_factory.mktemp("small"))
    store.learn(example_profiles.run())
    for profile in example_profiles.profiles():
        store.write_profile(profile)
    found = sorted(path for path in store.folder.rglob("*.json"))
    return {path.relative_to(store.folder): json.loads(path.read_text()) for path in found}


def make_everything(folder, documents):
    """Write a run's folder, and make everything that the project makes from it."""
    for name, content in documents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    store = Store(folder)
    story = build.tell(store)
    html.page(story)
    markdown.page(story)
    material = Material(story.view, {})
    for exporter in EXPORTERS.values():
        with contextlib.suppress(NoExport):
            exporter.export(material)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_a_changed_run_is_refused_or_rendered(small, tmp_path_factory, data):
    path = data.draw(st.sampled_from(sorted(small)))
    place = data.draw(st.sampled_from([place for place in places(small[path]) if place]))
    document = changed(small[path], place, data.draw(st.just(REMOVED) | st.sampled_from(WRONG)))
    folder = tmp_path_factory.mktemp("changed")
    try:
        make_everything(folder, {**small, path: document})
    except Unreadable as error:
        assert str(error).startswith(str(folder))
        assert len(str(error)) < 2_000


def test_figures_at_the_schemas_limits_are_drawn(small, tmp_path):
    """Each record is at a different extreme of the schema. No ratio or logarithm of them may break a chart."""
    ends = {
        "step_seconds": ([1e-10, 1e6, 1e6], [1e6] * 3, [1e-10] * 3),
        "warmup_step_seconds": ([1e-10] * 3, [1e6], []),
        "pace_seconds": ([1e-5] * 3, [1e3, 1e-5, 1.0]),
        "phases": ({"trace": 1e9}, {"compile": 1e-300, "trace": 0.0}, {}),
        "peak_bytes": (0, 1, 2**60),
        "peak_compiler_bytes": (2**60, 0),
        "steps_per_value": (0, 2**53, 1),
        "started_at": ("1970-01-01T00:00:00+00:00", "2199-12-31T00:00:00-11:00"),
        "other_load": (1e6, 0.0),
    }
    documents = dict(small)
    for number, (name, content) in enumerate(small.items()):
        if name.parent.name == "records" and content["status"] == "measured":
            documents[name] = {**content, **{field: values[number % len(values)] for field, values in ends.items()}}
    make_everything(tmp_path, documents)
    assert Store(tmp_path).records()
    build.build(Store(tmp_path))
