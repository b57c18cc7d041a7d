"""The embedded names: tokens, order, held-out names, and files of the user's own."""

import itertools
import os

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
    assert names.spelled(tokens[1:-1]).isalpha()
    with pytest.raises(IndexError):
        data.inputs(data.rows)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "has 0 distinct names"),
        (b"anna\nbob\n" * 50, "has 2 distinct names"),
        (b"anna\nBob\n", r"line 2: 'Bob' is not a name"),
        (b"ren\xc3\xa9e\n", "line 1: '.*' is not a name"),
        (b"ab\n\nabcdefghijklmnop\n", "line 3: 'abcdefghijklmnop' is not a name"),
        (b"a\n", "line 1: 'a' is not a name"),
        (b"a" * (names.MOST_BYTES + 1), "more than 16 MiB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_files(tmp_path, content, problem):
    """Each problem has its own message, with the line."""
    file = tmp_path / "names.txt"
    file.write_bytes(content)
    with pytest.raises(CorruptData, match=problem):
        names.read(file)


def test_own_names(tmp_path):
    """A file of one's own is divided in the same way."""
    file = tmp_path / "names.txt"
    file.write_bytes(b"\r\n".join(bytes([97, 97 + n]) for n in range(20)))
    assert (names.read(file).rows, names.read(file).train_rows) == (20, 18)
    with pytest.raises(CorruptData, match="can't be read"):
        names.read(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CorruptData, match="it is not a file"):
        names.read(tmp_path / "pipe")


def test_every_length_is_trained_on(tmp_path):
    """A compiled engine has graphs for these lengths only, so no name of another length is held out."""
    file = tmp_path / "names.txt"
    pairs = ["".join(pair) for pair in itertools.product("abc", repeat=4)]
    for length in range(5, 16):
        file.write_text("\n".join([*pairs, "b" * length]))
        data = names.read(file)
        trained = {len(tokens) for tokens in data.tokens[: data.train_rows]}
        assert trained == {6, length + 2}
