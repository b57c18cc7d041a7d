"""Notes below tables that mix engines compiled with and without -march=native."""

import pytest

from zoomgrad.reports.pages import markdown
from zoomgrad.reports.story import story
from zoomgrad.reports.text.native_notes import native_note
from zoomgrad.results.record import EngineFacts
from zoomgrad.results.samples import CORRECTED

NOTE = "Compiled for this machine's processor (-march=native): rerolled-clang. The other engines are not."


def facts(**native):
    return {name.replace("_", "-"): EngineFacts(idea="", strict=True, native=value) for name, value in native.items()}


@pytest.mark.parametrize(
    ("native", "note"),
    [
        ({"tcc": False, "rerolled_clang": True}, (NOTE,)),
        ({"tcc": False, "clang_O1": False}, ()),
        ({"rerolled_gcc": True, "rerolled_clang": True}, ()),
        ({"tcc": None, "rerolled_clang": None}, ()),
        ({"tcc": None, "rerolled_clang": True}, ()),
        ({}, ()),
    ],
)
def test_there_is_a_note_if_both_kinds_are_present_and_all_are_known(native, note):
    known = facts(**native)
    assert native_note(known, known) == note


def test_every_table_that_mixes_both_kinds_has_the_note(example):
    natives = {"baseline": False, "tuple": False, "local-grads": False, "clang-O1": False, "rerolled-clang-fast": True}
    engines = {name: known.model_copy(update={"native": natives[name]}) for name, known in example.run.engines.items()}
    told = story(example.run.model_copy(update={"engines": engines}), example.records)
    note = NOTE.replace("rerolled-clang", "rerolled-clang-fast")
    assert told.view.headline.notes[-1] == note
    for section in (told.break_even, told.phases):
        assert any(note in sheet.notes for sheet in section.sheets), section.name
    assert all(note in listing.notes for listing in told.listings)
    assert markdown.page(told).count(note.replace("_", "\\_")) >= 2
    # An old run does not record it.
    assert story(example.run, example.records).view.headline.notes == (CORRECTED,)
