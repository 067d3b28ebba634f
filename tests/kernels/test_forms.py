"""Which dtypes native kernels take, as they are declared and as they are."""

import numpy as np
import pytest

from seqflow import kernels
from seqflow.kernels.attention import AttentionSettings
from seqflow.kernels.dispatch import KERNELS, extension
from seqflow.kernels.forms import COUNTS, INTEGERS

pytestmark = pytest.mark.skipif(extension() is None, reason="native kernels were not built")

NUMBERS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "q", "Q", "f2", "f4", "f8"]
TIMES = ["M8[s]", "m8[D]"]
OTHERS = ["g", "c8", "c16", "G", "S3", "U2", "V5", "i4,f8"]
EVERY = [*NUMBERS, *TIMES, *OTHERS, "O"]

A = np.array
TWO = A([1, 1])


def floats(rows):
    """Weights of a cell of one unit, with rows of one input."""
    return rows.reshape(2, 1), np.zeros((1, 1), rows.dtype)


def _lines(rows):
    """Two blank lines where these are bytes."""
    return np.full(len(rows), ord("\n"), rows.dtype) if rows.dtype == np.uint8 else rows


def _heads(rows):
    """Two rows of one head of one number."""
    return rows.reshape(2, 1, 1)


ATTENDS = AttentionSettings(1.0, 1, 1, False, 0.0)

# The argument that holds rows, the dtypes of them that are native, and the other arguments to rows [2].
ROWS = {
    "add_by_id": ("data", ["f4", "f8"], lambda rows: (rows, A([0, 1]), 2, True)),
    "argsort_within": ("data", [*NUMBERS, *TIMES], lambda rows: (rows, TWO, False)),
    "attention_within": (
        "q", ["f4", "f8"], lambda rows: (_heads(rows), TWO, *[_heads(rows)] * 2, TWO, None, ATTENDS),
    ),
    "attention_within_backward": (
        "q", ["f4", "f8"],
        lambda rows: (
            *[_heads(rows)] * 4, rows.reshape(2, 1), _heads(rows), rows.reshape(2, 1), TWO, TWO, None, ATTENDS
        ),
    ),
    "bucketize": ("values", [dtype for dtype in NUMBERS if dtype != "f2"], lambda rows: (rows, rows)),
    "choose": (
        "x", [*NUMBERS, *TIMES, "c8", "U2"], lambda rows: (A([True, False]), rows, rows, np.empty_like(rows)),
    ),
    "cumsum_within": ("data", NUMBERS, lambda rows: (rows, TWO, False, False)),
    "discounted_sums": ("data", ["f4", "f8"], lambda rows: (rows, np.ones(2), TWO, None, True, 0.5)),
    "multiply_segments": (
        "x", ["f4", "f8"], lambda rows: (rows.reshape(2, 1), np.zeros((2, 1, 1), rows.dtype), TWO, False),
    ),
    "distinct_sequences": ("data", [*NUMBERS, *TIMES, *OTHERS], lambda rows: (rows, TWO, None)),
    "expand": ("data", [*NUMBERS, *TIMES, *OTHERS], lambda rows: (rows, TWO, None)),
    "fill_packed": (
        "data", [*NUMBERS, *TIMES, *OTHERS],
        lambda rows: (rows, TWO, (A([0]), A([0]), A([1]), A([1])), 3, rows[0], None),
    ),
    "find_strings": (
        "data", ["u1"], lambda rows: (np.zeros((1, 2), int), A([0]), np.zeros(0, "u1"), rows, TWO),
    ),
    "gather": ("data", [*NUMBERS, *TIMES, *OTHERS], lambda rows: (rows, A([1]), False, None, None)),
    "gather_segment_reduce": ("table", NUMBERS, lambda rows: ("max", rows, A([0, 1]), TWO, 0, None)),
    "words_of_strings": ("data", ["u1"], lambda rows: (rows, TWO)),
    "hash_strings": ("data", ["u1"], lambda rows: (rows, TWO, 0, 5)),
    "gather_segment_weigh": (
        "table", NUMBERS, lambda rows: (rows, np.ones(2), A([0, 1]), TWO, False, 0, None),
    ),
    "move_slices": (
        "source", [*NUMBERS, *TIMES, *OTHERS], lambda rows: (rows, A([0]), A([1]), rows.copy(), A([1])),
    ),
    "pack_by_time": ("data", [*NUMBERS, *TIMES, *OTHERS], lambda rows: (rows, TWO, 1, rows[0], None)),
    "normalize_within": ("data", ["f4", "f8"], lambda rows: (rows, TWO, False)),
    "pad": (
        "data", [*NUMBERS, *TIMES, *OTHERS], lambda rows: (rows, TWO, 2, rows[0], "left", True, None, None),
    ),
    "parse_csv": ("data", ["u1"], lambda rows: (_lines(rows), ["int64"], 44, 0)),
    "parse_json": ("data", ["u1"], lambda rows: (_lines(rows), ["a"], ["int64"])),
    "pool_quantized": (
        "table", ["u1"],
        lambda rows: (
            "sum", np.repeat(rows.reshape(2, 1), 9, axis=1), None, A([0, 1]), TWO, 8, "float32", False
        ),
    ),
    "read_footer": ("footer", ["u1"], lambda rows: (rows,)),
    "run_cell": (
        "x", ["f4", "f8"],
        lambda rows: ("rnn_tanh", floats(rows)[0], TWO, *[floats(rows)[1]] * 2, *[None] * 5, False),
    ),
    "scatter_segments": (
        "data", ["f4", "f8"], lambda rows: (rows, A([0, 1]), TWO, None, 3, None),
    ),
    "segment_arg": ("data", NUMBERS, lambda rows: ("min", rows, TWO)),
    "segment_logsumexp": ("data", NUMBERS, lambda rows: (rows, TWO, 0)),
    "segment_reduce": ("data", NUMBERS, lambda rows: ("mean", rows, TWO, 0)),
    "segment_topk": ("data", NUMBERS, lambda rows: (rows, TWO, 1)),
    "segment_variance": ("data", NUMBERS, lambda rows: (rows, TWO, 0, 0)),
    "softmax_within": ("data", NUMBERS, lambda rows: (rows, TWO, False)),
    "softmax_within_backward": ("out", ["f4", "f8"], lambda rows: (rows.astype(rows.dtype), rows, TWO)),
    "sort_within": ("data", [*NUMBERS, *TIMES], lambda rows: (rows, TWO, True)),
    "split_lines": ("data", ["u1"], lambda rows: (rows, A([32]).astype(np.uint8), A([9]).astype(np.uint8))),
    "unpack_by_time": ("packed", [*NUMBERS, *TIMES, *OTHERS], lambda rows: (rows.reshape(1, 2), TWO, None)),
    "unpad": ("padded", [*NUMBERS, *TIMES, *OTHERS], lambda rows: (rows.reshape(2, 1), TWO, "right", None)),
    "put_elements": ("data", NUMBERS, lambda rows: (rows, A([1, -1]), A([2, 0]))),
    "segment_extreme": ("data", NUMBERS, lambda rows: ("max", rows.reshape(1, 2), A([1]), 0)),
    "windows": ("data", [*NUMBERS, *TIMES, *OTHERS], lambda rows: (rows, TWO, 1, 1, rows[0])),
}  # fmt: skip

CHUNKS = kernels.ChunkedRows([A([1.0, 2.0]), A([4.0])])

COUNTED = {
    "check_lengths": lambda lengths: (lengths,),
    "gather_slices": lambda starts: (CHUNKS, starts, starts, None),
    "pad_batches": lambda starts: (
        CHUNKS,
        [(starts, starts, np.empty((2, 2)), None)],
        0,
        "right",
        False,
        None,
    ),
    "edit_distances": lambda lengths: (A([0, 1]), A([1, 1]), A([3]), lengths),
    "isin_within": lambda lengths: (A([0, 1]), A([1, 1]), A([3]), lengths),
    "longest_common": lambda lengths: (A([0, 1]), A([1, 1]), A([3]), lengths),
    "minhash": lambda lengths: (A([5]), lengths, A([1, 2]), A([3, 4])),
    "find_words": lambda words: (np.zeros((1, 2), int), words),
    "hash_slots": lambda words: (words,),
    "assign": lambda costs: (costs, A([2])),
    "distinct_ids": lambda ids: (ids,),
    "group_rows": lambda ids: (ids, 2),
    "hash_grams": lambda lengths: (A([5]), lengths, 1, 0),
    "hash_ids": lambda ids: (ids, 0, 5),
    "least_of_bins": lambda lengths: (A([5]), lengths, 0, 3),
    "lengths_to_offsets": lambda lengths: (lengths,),
    "lengths_to_positions": lambda lengths: (lengths,),
    "lengths_to_segment_ids": lambda lengths: (lengths,),
    "max_length": lambda lengths: (lengths,),
    "offsets_to_lengths": lambda offsets: (offsets,),
    "prefix_tree": lambda data: (data, A([1, 1]), None, 1),
    "plan_packing": lambda lengths: (lengths, 5, "concat", 0),
    "segment_ids_to_lengths": lambda ids: (ids, None),
    "tree_paths": lambda lengths: (A([-1, 0]), lengths),
}


def test_all_kernels_are_here():
    assert set(ROWS) | set(COUNTED) | {"read_footers"} == set(KERNELS)  # it takes paths alone


@pytest.mark.parametrize("name", ROWS)
def test_these_dtypes_of_rows_are_native_and_declared(name):
    argument, dtypes, arguments_of = ROWS[name]
    kernel = KERNELS[name]
    rows = {dtype: np.zeros(2, dtype) for dtype in EVERY}
    native = [dtype for dtype in EVERY if kernel.native(*arguments_of(rows[dtype])) is not NotImplemented]
    assert native == dtypes
    assert [dtype for dtype in EVERY if kernel.forms[argument].takes(rows[dtype])] == dtypes


@pytest.mark.parametrize("name", COUNTED)
def test_counts_are_native_in_int32_and_int64(name):
    kernel = KERNELS[name]
    integers = [dtype for dtype in EVERY if np.dtype(dtype).kind in "iu"]
    native = [d for d in integers if kernel.native(*COUNTED[name](A([0, 1], d))) is not NotImplemented]
    assert native == ["i4", "i8", "q"]
    assert [d for d in integers if COUNTS.takes(A([0, 1], d))] == native


@pytest.mark.parametrize("name", KERNELS)
def test_lengths_and_indices_are_counts(name):
    forms = KERNELS[name].forms
    assert all(forms[each] in (COUNTS, INTEGERS) for each in ("lengths", "ids", "indices") if each in forms)


@pytest.mark.parametrize(
    "style",
    [
        lambda rows: np.repeat(rows, 2)[::2],
        lambda rows: rows[::-1],
        lambda rows: rows.astype(rows.dtype.newbyteorder()),
    ],
    ids=["strided", "reversed", "other byte order"],
)
def test_rows_in_another_form_are_declined_and_brought_into_it(style):
    kernel = KERNELS["segment_reduce"]
    rows, lengths = style(A([1.0, 2, 4])), A([2, 1])
    assert kernel.native("sum", rows, lengths, 0) is NotImplemented
    brought = kernel.forms["data"].bring(rows, "data")
    assert kernel.native("sum", brought, lengths, 0).tolist() == kernel.body("sum", rows, lengths).tolist()
    assert kernels.segment_reduce("sum", rows, lengths).tolist() == [rows[0] + rows[1], rows[2]]
