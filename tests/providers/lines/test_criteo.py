"""Files of Criteo's click logs."""

import numpy as np
import pytest

import seqflow as sf
from seqflow.errors import ProviderError

INTEGERS = ["1", "-1", "", "70000000000", *["0"] * 9]
CATEGORIES = ["68fd1e64", "", "FFFFFFFF", "0", *["a"] * 22]
FULL = "\t".join(["1", *INTEGERS, *CATEGORIES])


def read(path, *lines, ending="\n", **options):
    path.write_text("".join(line + ending for line in lines), newline="")
    provider = sf.open(path, format=sf.Criteo(**options))
    return [row for block in provider.blocks() for row in provider.read(block).to_pylist()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "day_0"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_row_is_a_label_integers_and_categories(path, ending):
    missing = "\t" * 39
    found = read(path, FULL, "", f"0{missing}", ending=ending)
    assert found == [
        {
            "label": 1,
            "integers": [1, -1, None, 70_000_000_000, *[0] * 9],
            "categories": [0x68FD1E64, None, 0xFFFFFFFF, 0, *[10] * 22],
        },
        {"label": 0, "integers": [None] * 13, "categories": [None] * 26},
    ]


def test_categories_may_stay_texts(path):
    (row,) = read(path, FULL, categories="texts")
    assert row["categories"] == [text.encode() or None for text in CATEGORIES]


def test_a_test_set_has_no_label(path):
    (row,) = read(path, FULL.partition("\t")[2])
    assert list(row) == ["integers", "categories"]
    assert row["integers"][:2] == [1, -1]


def test_a_loader_gives_matrices_with_missing_values_filled_or_marked(path):
    read(path, FULL)
    fill = {"integers": 0, "categories": -1}
    (batch,) = sf.Loader(path, kind="criteo", fill=fill, net="x = log1p(float32(relu(integers)))")
    assert batch["categories"].tolist() == [[0x68FD1E64, -1, 0xFFFFFFFF, 0, *[10] * 22]]
    np.testing.assert_allclose(batch["x"][0, :4], np.log1p([1, 0, 0, 7e10]), rtol=1e-6)
    (batch,) = sf.Loader(path, kind="criteo", columns=["integers"], valid=True)
    assert batch["integers.values.valid"].tolist() == [[True, True, False, *[True] * 10]]
    with pytest.raises(ProviderError, match="null value in integers"):
        list(sf.Loader(path, kind="criteo"))


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        ("1\t2\t3", "categories", "line 2, column 1: found 3 fields, expected 40 fields"),
        (FULL + "\t", "categories", "line 2, column 1: found 41 fields, expected 40 fields"),
        (FULL[1:], "label", "line 2, column 1: found '', expected an integer"),
        ("1\tx" + "\t" * 38, "integers", "line 2, column 3: found 'x', expected an integer or nothing"),
        ("1\t1.5" + "\t" * 38, "integers", "line 2, column 3: found '1.5', expected an integer or nothing"),
        ("1" + "\t" * 39 + "xyz", "categories", "line 2, column 41: found 'xyz', expected a hexadecimal"),
        ("1" + "\t" * 39 + "-a", "categories", "line 2, column 41: found '-a', expected a hexadecimal"),
        ("1" + "\t" * 39 + "f" * 16, "categories", "found 'ffffffffffffffff', expected a hexadecimal"),
    ],
)
def test_a_malformed_line_says_where_and_why(path, line, column, reason):
    with pytest.raises(ProviderError) as raised:
        read(path, FULL, line, FULL)
    assert str(raised.value).startswith(str(path))
    assert reason in str(raised.value)
    provider = sf.open(path, kind="criteo")
    bad = []
    batch = provider.read(next(provider.blocks()), bad_rows=bad)
    assert [(row, name) for row, name, *_ in bad] == [(1, column)]
    assert batch.num_rows == 3


def test_an_unknown_way_to_read_categories_is_an_error(path):
    with pytest.raises(ProviderError, match="categories is 'hex', expected 'ids' or 'texts'"):
        read(path, FULL, categories="hex")
