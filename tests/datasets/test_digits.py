"""The embedded digits equal UCI's and can be rebuilt from either published text."""

import gzip
import hashlib

import pytest

from datasets import digits, idx, rebuild_digits


@pytest.fixture(scope="module")
def dataset():
    return digits.load()


@pytest.fixture(scope="module")
def lines(dataset):
    """Lines of the text in which the digits were published."""
    rows = [dataset.features[row * 64 : row * 64 + 64] for row in range(dataset.rows)]
    return [",".join(map(str, [*pixels, label])) for pixels, label in zip(rows, dataset.targets)]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Move the paths of the embedded files to the test's folder."""
    monkeypatch.setattr(digits, "IMAGES_PATH", tmp_path / "images.gz")
    monkeypatch.setattr(digits, "LABELS_PATH", tmp_path / "labels.gz")
    return tmp_path


def test_shape(dataset):
    assert (dataset.name, dataset.rows, dataset.width, dataset.train_rows) == ("digits", 1797, 64, 1437)
    assert (dataset.divisor, dataset.classes) == (16.0, 10)
    assert (min(dataset.features), max(dataset.features)) == (0, 16)


def test_content_matches_the_pinned_hashes():
    assert hashlib.sha256(gzip.decompress(digits.IMAGES_PATH.read_bytes())).hexdigest() == digits.IMAGES_SHA256
    assert hashlib.sha256(gzip.decompress(digits.LABELS_PATH.read_bytes())).hexdigest() == digits.LABELS_SHA256


def test_content_matches_ucis_description(dataset):
    """The pinned hash proves that nothing changed; UCI's class counts (optdigits.names) prove that it is right."""
    counts = [bytes(dataset.targets).count(label) for label in range(10)]
    assert counts == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert bytes(dataset.features[:8]) == bytes([0, 0, 5, 13, 9, 1, 0, 0])


@pytest.mark.parametrize("form", ["optdigits.tes", "digits.csv.gz"])
def test_rebuilt_from_either_text(elsewhere, lines, dataset, form):
    if form == "optdigits.tes":
        content = "\n".join(lines).encode() + b"\n"
    else:
        floats = (",".join(f"{int(field):.18e}" for field in line.split(",")) for line in lines)
        content = gzip.compress("\n".join(floats).encode())
    (elsewhere / form).write_bytes(content)
    assert rebuild_digits.main([str(elsewhere / form)]) == 0
    rebuilt = digits.load()
    assert rebuilt.features == dataset.features
    assert rebuilt.targets == dataset.targets
    for path in (digits.IMAGES_PATH, digits.LABELS_PATH):
        assert path.read_bytes()[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "its header must have no name and no time"


def edited(line, column, field):
    fields = line.split(",")
    fields[column] = field
    return ",".join(fields)


@pytest.mark.parametrize(
    "damage, cause",
    [
        (lambda line: line + ",1", "has 66 fields in line 2, a row has 65"),
        (lambda line: "", "has 1 fields in line 2, a row has 65"),
        (lambda line: edited(line, 3, "17"), "has '17' in line 2, an integer from 0 to 16 is expected"),
        (lambda line: edited(line, 3, "0.5"), "has '0.5' in line 2, an integer from 0 to 16 is expected"),
        (lambda line: edited(line, 3, "nan"), "has 'nan' in line 2, an integer from 0 to 16 is expected"),
        (lambda line: edited(line, 3, "x"), "has 'x' in line 2, an integer from 0 to 16 is expected"),
        (lambda line: edited(line, 64, "10"), "has '10' in line 2, an integer from 0 to 9 is expected"),
    ],
)
def test_a_wrong_row_is_refused(elsewhere, lines, capsys, damage, cause):
    (elsewhere / "optdigits.tes").write_text("\n".join([lines[0], damage(lines[1]), *lines[2:]]))
    assert rebuild_digits.main([str(elsewhere / "optdigits.tes")]) == 1
    assert capsys.readouterr().err == f"digits: optdigits.tes {cause}\n  {rebuild_digits.REMEDY}\n"
    assert not digits.IMAGES_PATH.exists()


def test_correct_rows_in_the_wrong_order_are_refused(elsewhere, lines):
    (elsewhere / "optdigits.tes").write_text("\n".join(reversed(lines)))
    with pytest.raises(idx.CorruptData) as caught:
        rebuild_digits.rebuild(elsewhere / "optdigits.tes")
    assert "optdigits.tes holds 1,797 digits, but not the embedded ones (SHA-256 " in str(caught.value)
    assert not digits.IMAGES_PATH.exists()


def test_a_missing_source_is_named(tmp_path, capsys):
    assert rebuild_digits.main([str(tmp_path / "none")]) == 1
    assert str(tmp_path / "none") in capsys.readouterr().err


@pytest.mark.parametrize("name", ["IMAGES_PATH", "LABELS_PATH"])
def test_other_digits_are_refused(tmp_path, monkeypatch, name):
    """The file is well formed, but one pixel or label differs."""
    content = bytearray(gzip.decompress(getattr(digits, name).read_bytes()))
    content[-1] ^= 1
    path = tmp_path / "digits.gz"
    path.write_bytes(gzip.compress(content))
    monkeypatch.setattr(digits, name, path)
    with pytest.raises(idx.CorruptData, match=r"digits: digits\.gz is not the published file"):
        digits.load()
