"""The report's text on vouchers and proofs."""

import pytest

from zoomgrad.reports.pages.html import page
from zoomgrad.reports.pages.markdown import page as text
from zoomgrad.reports.sections.vouching import BEFORE_TIMING, WHILE_TIMING, vouched
from zoomgrad.reports.story import story
from zoomgrad.results.record import Cell, PassedOver, Voucher, Vouching


def voucher(engine, steps, drills=("short",)):
    cell = Cell(engine=engine, interpreter="cpython-3.13", workload="xor")
    return Voucher(cell=cell, drills=drills, steps=steps, worker_seconds=2.0)


@pytest.fixture
def vouching():
    four = ("short", "single", "whole", "ragged")
    return Vouching(
        workload="xor",
        vouchers=(voucher("tuple", 1), voucher("tcc", 8192, four), voucher("gcc-O0", 4096, four)),
        passed_over=(PassedOver(engine="clang-O0", status="skipped", reason="there is no clang on PATH"),),
    )


def test_the_text_names_the_vouchers_and_their_steps(vouching):
    first, who = vouched([vouching], [])
    assert first == WHILE_TIMING
    assert who == (
        "xor: tuple vouches for tcc and gcc-O0 over 1 drill and the first step of training. These vouch for each "
        "other over 4 drills and the first 4,096 steps of training, and tcc vouches for every other engine. "
        "clang-O0 was passed over: there is no clang on PATH."
    )


def test_the_text_states_the_comparisons_and_their_cost(vouching, example):
    records = [record for record in example.records if record.status == "measured"][:2]
    proofs = [record.proof.model_copy(update={"stretches": 8, "seconds": 1.0, "steps": 64}) for record in records]
    proven = [
        record.model_copy(update={"proof": proof, "worker_seconds": 5.0})
        for record, proof in zip(records, proofs, strict=True)
    ]
    assert vouched([vouching], proven)[-1] == (
        "16 timed stretches were compared, each of 64 to 64 steps. Vouching and comparing took 50 % of the run."
    )


def test_an_older_run_has_the_older_text(example):
    assert vouched((), example.records) == (BEFORE_TIMING,)


def test_the_text_is_on_the_pages(vouching, example):
    told = story(example.run, example.records, vouchings=[vouching])
    for written in (page(told, []), text(told)):
        assert "tuple vouches for tcc and gcc-O0" in written
        assert "Before a cell was timed" not in written
