"""Files of libsvm and svmlight."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import seqflow as sf
from seqflow import kernels
from seqflow.errors import ProviderError
from seqflow.kernels.dispatch import extension
from seqflow.providers.lines.libsvm import LibsvmFormat

I64 = 2**63 - 1


def read(path, text, **options):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    provider = sf.open(path, format=sf.Libsvm(**options))
    return [row for block in provider.blocks() for row in provider.read(block).to_pylist()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x"


def test_a_row_is_a_label_and_a_map(path):
    assert read(path, "+1 3:0.5 7:-2e1\r\n-1\t0:.5  # 4:4\n# a comment\n\n 2.5 \n") == [
        {"label": 1.0, "features": [(3, 0.5), (7, -20.0)]},
        {"label": -1.0, "features": [(0, 0.5)]},
        {"label": 2.5, "features": []},
    ]


def test_the_tensors_are_what_pooling_takes(path):
    read(path, "1 0:0.5 2:2\n0\n1 1:3\n")
    (batch,) = sf.Loader(
        path,
        kind="libsvm",
        net="sums = sparse_lengths_sum(table, features.keys, features.lengths)\n"
        "return label, sums, features.values",
        constants={"table": np.array([1.0, 10.0, 100.0])},
    )
    assert batch["sums"].tolist() == [101, 0, 10]
    assert batch["features.values"].tolist() == [0.5, 2, 3]


def test_indices_may_count_from_1(path):
    assert read(path, "1 1:2 5:3", one_based=True) == [{"label": 1.0, "features": [(0, 2.0), (4, 3.0)]}]
    with pytest.raises(
        ProviderError, match=r"line 1, column 3: found '0:2', expected an index of at least 1"
    ):
        read(path, "1 0:2", one_based=True)


def test_a_query_has_a_column_where_the_first_row_has_it(path):
    assert read(path, "# ranking\n3 qid:7 1:1\n2 qid:-8\n") == [
        {"label": 3.0, "qid": 7, "features": [(1, 1.0)]},
        {"label": 2.0, "qid": -8, "features": []},
    ]


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("1:2 3:4", "label", "line 1, column 1: found '1:2', expected a label, which is a number"),
        ("abc 3:4", "label", "line 1, column 1: found 'abc', expected a label, which is a number"),
        ("1,2 3:4", "label", "line 1, column 1: found '1,2', expected a label"),
        ("1\n1 3:4 5", "features", "line 2, column 7: found '5', expected index:value"),
        ("1 3:", "features", "line 1, column 5: found '3:', expected index:value"),
        ("1 3: 4", "features", "line 1, column 5: found '3:', expected index:value"),
        ("1 3:# 4", "features", "line 1, column 5: found '3:', expected index:value"),
        ("1 :4", "features", "line 1, column 3: found ':4', expected index:value"),
        ("1 3:4:5", "features", "line 1, column 5: found '3:4:5', expected index:value"),
        ("1 3::5", "features", "line 1, column 5: found '3::5', expected index:value"),
        ("1 1.5:2", "features", "found '1.5:2', expected an integer of 64 bits as the index"),
        (f"1 {I64 + 1}:2", "features", f"found '{I64 + 1}:2', expected an integer of 64 bits as the index"),
        (f"1 {'1' * 60}:2", "features", f"found '{'1' * 40}…', expected an integer of 64 bits"),
        ("1 -3:2", "features", "line 1, column 3: found '-3:2', expected an index of at least 0"),
        ("1 3:1 4:x 5:y", "features", "line 1, column 9: found '4:x', expected a number as the value"),
        ("1 3:+-1", "features", "line 1, column 5: found '3:+-1', expected a number as the value"),
        (b"1 3:\xff", "features", "found '3:\N{REPLACEMENT CHARACTER}', expected a number as the value"),
        (b"1 3:1\x00", "features", "found '3:1\\x00', expected a number as the value"),
        ("1 qid:x 1:2", "qid", "line 1, column 7: found 'qid:x', expected an integer as the qid"),
        ("1 qid:3\n2 1:2", "qid", "line 2, column 1: found '2', expected a label and then qid:number"),
        ("1 1:2\n1 qid:3", "features", "line 2, column 3: found 'qid:3', expected an integer of 64 bits"),
    ],
)
def test_a_malformed_line_says_where_and_why(path, text, column, reason):
    with pytest.raises(ProviderError) as raised:
        read(path, text)
    assert str(raised.value).startswith(str(path))
    assert reason in str(raised.value)
    provider = sf.open(path, kind="libsvm")
    bad = []
    batch = provider.read(next(provider.blocks()), bad_rows=bad)
    assert [(row, name) for row, name, *_ in bad] == [(batch.num_rows - 1, column)]
    assert batch["features"][batch.num_rows - 1].as_py() is None


ROWS = st.lists(
    st.tuples(
        st.floats(allow_nan=False, allow_infinity=False),
        st.lists(st.tuples(st.integers(0, I64), st.floats(width=32, allow_nan=False, allow_infinity=False))),
    )
)


@given(ROWS)
def test_what_is_written_is_read(tmp_path_factory, written):
    lines = [" ".join([repr(label), *(f"{k}:{v!r}" for k, v in pairs)]) for label, pairs in written]
    found = read(tmp_path_factory.getbasetemp() / "written", "\n".join(lines), batch_bytes=512)
    assert found == [{"label": label, "features": pairs} for label, pairs in written]


needs_native = pytest.mark.skipif(extension() is None, reason="native kernels were not built")


def parsed(text, has_qid=False, one_based=False):
    batch, malformed = LibsvmFormat(has_qid, one_based).parse(np.frombuffer(text, np.uint8))
    batch.validate(full=True)
    values = batch["features"].items.to_numpy(zero_copy_only=False)
    bits = batch["label"].to_numpy().tobytes() + values.astype(np.float32).tobytes()
    return repr(batch.to_pylist()), bits, list(malformed)


NUMBERS = st.one_of(
    st.floats().map(repr),
    st.floats(width=32).map(repr),
    st.from_regex(r"[-+]?[0-9]{0,25}\.?[0-9]{0,50}(e[-+]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(
        ["nan", "INF", "-infinity", "1e999", "-1e-999", "0e9999999999999999999", "+-1", ".", "1e"]
    ),
)
INDICES = st.one_of(st.integers(-2, 5).map(str), st.integers(-(2**64), 2**64).map(str), st.just("qid"))
PAIRS = st.tuples(INDICES, NUMBERS).map(":".join)
WORDS = st.one_of(PAIRS, NUMBERS, st.text(" \t\r\v\f:#+-.0123456789e\0x", max_size=5))
LINES = st.lists(
    st.tuples(NUMBERS, st.just("qid:3") | WORDS, st.lists(PAIRS), WORDS | st.just("")).map(
        lambda parts: " ".join([*parts[:2], *parts[2], parts[3]])
    ),
    max_size=4,
)


@needs_native
@given(LINES, st.booleans(), st.booleans(), st.sampled_from(["\n", "\r\n", "\n\n", " # 1:x\n"]))
@example(["1 1:16777217", "1 1:16777219 2:1.00000005960464477539062500000001"], False, False, "\n")
@example(["1 1:1e-45 2:1.401298464324817e-45 3:1.17549435e-38 4:3.4028236e38"], False, False, "\n")
def test_native_and_arrow_parse_the_same(lines, has_qid, one_based, ending):
    text = "".join(line + ending for line in lines).encode()
    found = parsed(text, has_qid, one_based)
    with kernels.use("reference"):
        assert parsed(text, has_qid, one_based) == found


@needs_native
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(1, 25))
def test_floats_of_any_number_of_digits_are_rounded_once(number, digits):
    text = f"{number:.{digits}g} 0:{number:.{digits}g} 1:{number:.{digits}f}\n".encode()
    found = parsed(text)
    with kernels.use("reference"):
        assert parsed(text) == found
