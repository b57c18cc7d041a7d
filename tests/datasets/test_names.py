"""The embedded names: tokens, order and held-out names."""

import bz2

import pytest

from zoomgrad.datasets import names
from zoomgrad.datasets.idx import CorruptData


def test_embedded_names():
    """All names are there, and no held-out name is trained on."""
    data = names.load()
    train, held_out = data.tokens[: data.train_rows], data.tokens[data.train_rows :]
    assert len(set(data.tokens)) == 29_494
    assert len(held_out) == len(set(held_out)) == 2_949
    assert not set(train) & set(held_out)
    assert {len(tokens) - 1 for tokens in data.tokens} == set(range(3, 17))
    assert {len(tokens) - 1 for tokens in train[:14]} == set(range(3, 17))
    assert len(train) + sum(1 for _ in held_out) <= 32_033


def test_a_row_is_tokens_then_targets():
    """`inputs` is the one-hot form of `labels`, and tokens spell the name."""
    data = names.load()
    tokens, labels, inputs = data.tokens[0], data.labels(0), data.inputs(0)
    assert tokens[0] == tokens[-1] == names.BOUNDARY
    assert labels == tokens[:-1] + tokens[1:]
    assert names.load(context=2).labels(0) == tokens[:2] + tokens[1:3]
    ones = [at for at, x in enumerate(inputs) if x]
    assert [at % names.TOKENS for at in ones] == list(labels)
    assert [at // names.TOKENS for at in ones] == list(range(len(labels)))
    assert names.BOUNDARY not in tokens[1:-1]
    with pytest.raises(IndexError):
        data.inputs(data.rows)


def test_other_names_are_refused(tmp_path, monkeypatch):
    """A file that is cut, or that has another name."""
    whole = bz2.decompress(names.PATH.read_bytes())
    monkeypatch.setattr(names, "PATH", tmp_path / "names.bz2")
    for content in (b"", bz2.compress(whole[:-1])):
        names.PATH.write_bytes(content)
        with pytest.raises(CorruptData, match=r"names\.bz2 .*\n  Restore it"):
            names._embedded.__wrapped__()
