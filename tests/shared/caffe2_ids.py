"""Known answers of Caffe2's operators on ranges, sparse and dense, keys, ids, buckets and single steps."""

import numpy as np
from typed_arrays import f32, i32, i64, texts

from seqflow.errors import LodError, OpError, OpIndexError, OpTypeError, ShapeError


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


RANGES = i32([[0, 1], [2, 2]], [[3, 0], [1, 1]])
GATES = f32([[0, 1, -1, 2], [1, 1, 1, 1]])
H, C = f32([0.5], [0.25]), f32([2], [3])
CELL = sigmoid(1) * 2 + sigmoid(0) * np.tanh(2)
BIASED = sigmoid(2) * 2 + sigmoid(0) * np.tanh(2)
HIDDEN = sigmoid(-1) * np.tanh(CELL)
GRU = sigmoid(1) * 0.5 + (1 - sigmoid(1)) * np.tanh(-1)
EXAMPLES = [
    # ranges
    ("GatherRanges", [f32(10, 20, 30, 40), RANGES], {}, [f32(10, 30, 40, 20), i32(3, 1)]),
    ("GatherRanges", [["a", "b", "c", "d"], RANGES], {}, [texts("a", "c", "d", "b"), i32(3, 1)]),
    ("GatherRangesToDense", [f32(10, 20, 30, 40), RANGES], {"lengths": [1, 2]}, [f32([10], [0]), f32([30, 40], [0, 0])]),
    ("GatherRangesToDense", [f32(10, 20, 30, 40), RANGES, i64(0, 0, 9, 2)], {"lengths": [1, 2]}, [f32([10], [0]), f32([40, 30], [0, 0])]),
    ("GatherRangesToDense", [["a", "b"], i32([[1, 1]], [[0, 0]])], {"lengths": [1]}, [texts(["b"], [""])]),
    # sparse and dense
    ("SparseToDense", [i32(1, 3, 1), f32(1, 2, 3)], {}, [f32(0, 4, 0, 2)]),
    ("SparseToDense", [i64(1, 1), i32([1, 2], [3, 4]), f32(0, 0, 0)], {}, [i32([0, 0], [4, 6], [0, 0])]),
    ("SparseToDenseMask", [i64(7, 5, 9, 5), f32(1, 2, 3, 4), np.float32(-1), i32(2, 0, 2)], {"mask": [5, 7]}, [f32([2, 1], [-1, -1], [4, -1])]),
    ("SparseToDenseMask", [i32(7, -1, 7), f32([1, 2], [3, 4], [5, 6]), f32(0, 9)], {"mask": [5, 7], "return_presence_mask": 1},
     [f32([0, 9], [5, 6]), np.array([False, True])]),
    ("SparseToDenseMask", [i64(), f32(), np.float32(0), i32()], {"mask": [1]}, [np.zeros((0, 1), np.float32)]),
    ("SparseToDenseMask", [i64(5), ["a"], np.array("z", object), i32(1, 0)], {"mask": [5]}, [texts(["a"], ["z"])]),
    ("BatchSparseToDense", [i64(2, 0, 2), i64(0, 2, 1, 1), f32(6, 7, 8, 9)], {"dense_last_dim": 3}, [f32([6, 0, 7], [0, 0, 0], [0, 9, 0])]),
    ("BatchSparseToDense", [i32(1), i32(1), f32(6), f32([0, 0])], {"default_value": 2.5}, [f32([2.5, 6])]),
    ("BatchDenseToSparse", [i64(2, 1), i64(0, 2, 1), f32([6, 0, 7], [0, 8, 0])], {}, [f32(6, 7, 8)]),
    ("DenseVectorToIdList", [f32([1, 0, 2], [0, -1, 0.25], [0.5, -2, 9])], {}, [i32(2, 0, 3), i32(0, 2, 0, 1, 2)]),
    # keys
    ("Partition", [i32(4, -1, 6)], {"num_outputs": 2}, [i32(4, 6), i32(-1)]),
    ("Partition", [i64(-7, 4, 3), f32([1, 2], [3, 4], [5, 6])], {"num_outputs": 4, "pack_first_input": 1},
     [i64(2), f32([3, 4]), i64(-4, 1), f32([1, 2], [5, 6])]),
    ("Partition", [i32([0, 1], [2, 3]), f32([1, 2], [3, 4])], {"num_outputs": 4}, [i32(0, 2), f32(1, 3), i32(1, 3), f32(2, 4)]),
    ("LengthsPartition", [i32(2, 0, 1), i64(4, 5, 7), f32(1, 2, 3)], {"num_outputs": 6},
     [i32(1, 0, 0), i64(4), f32(1), i32(1, 0, 1), i64(5, 7), f32(2, 3)]),
    ("LengthsPartition", [i32(1, 1), i32(4, 7)], {"num_outputs": 4, "pack_first_input": True}, [i32(1, 0), i32(2), i32(0, 1), i32(3)]),
    ("GatherByKey", [i32(4, -1, 6), f32(1, 3), f32(2)], {}, [f32(1, 2, 3)]),
    ("KeySplit", [i64(2, 0, 2)], {"categorical_limit": 3}, [i32(1), i32(), i32(0, 2)]),
    ("SplitByLengths", [f32(*range(9)), i32(3, 2, 4)], {"axis": 0, "num_outputs": 3}, [f32(0, 1, 2), f32(3, 4), f32(5, 6, 7, 8)]),
    ("SplitByLengths", [f32([1, 2, 3, 4]), i32(1, 0, 2, 1)], {"num_outputs": 2}, [f32([1]), f32([2, 3, 4])]),
    ("SplitByLengths", [f32(*range(6)), i32(1, 1, 1, 0)], {"axis": 0, "num_outputs": 2, "use_scaling_lengths": 1}, [f32(0, 1, 2, 3), f32(4, 5)]),
    # ids
    ("Unique", [i64(30, 10, 30)], {}, [i64(10, 30), i32(1, 0, 1)]),
    ("Find", [i32(7, 5, 7), i32([5, 7], [9, 9])], {}, [i32([1, 2], [-1, -1])]),
    ("Find", [i64(7), i64(5)], {"missing_value": -9}, [i64(-9)]),
    ("FindDuplicateElements", [f32(3, 5, 3, 3)], {}, [i64(2, 3)]),
    ("FindDuplicateElements", [["a", "b", "a"]], {}, [i64(2)]),
    ("RemoveDataBlocks", [f32([1, 2], [3, 4], [5, 6]), i32(2, 0, 2)], {}, [f32([3, 4])]),
    ("RemoveDataBlocks", [["a", "b"], i32()], {}, [texts("a", "b")]),
    ("MergeIdLists", [i32(2, 1), i64(3, 1, 7), i32(2, 0), i64(1, 2)], {}, [i32(3, 1), i64(1, 2, 3, 7)]),
    ("MergeIdLists", [i32(3), i32(3, 1, 3)], {}, [i32(2), i32(1, 3)]),
    ("IndexHash", [i32(0, 1, 200)], {"modulo": 1000}, [i32(0, 196609 % 1000, -56 * 196609 % 1000)]),
    ("IndexHash", [i64(0, 1)], {"modulo": 100, "seed": 0}, [i64(0, pow(65537, 7) % 2**64 % 100)]),
    # buckets
    ("Bucketize", [f32([1, 1.5], [np.nan, 9])], {"boundaries": [1.0, 5.0]}, [i32([0, 1], [0, 2])]),
    ("BatchBucketize", [f32([0.5, 9, np.nan], [2, 9, 1]), i32(0, 2), f32(1, 5, 2.5), i32(2, 1)], {}, [i32([0, 1], [1, 0])]),
    ("OneHot", [i64(2, 0), i64(3)], {}, [f32([0, 0, 1], [1, 0, 0])]),
    ("SegmentOneHot", [i32(2, 0, 2), i64(2, 0, 1, 1), i64(3)], {}, [f32([1, 0, 1], [0, 0, 0], [0, 1, 0])]),
    ("BatchOneHot", [i64([2, 3], [4, 1], [2, 5]), i32(2, 3), i64(2, 4, 1, 3, 5)], {}, [i64([1, 0, 0, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 0, 1])]),
    ("BatchOneHot", [i32([7]), i32(2), i32(7, 7)], {}, [i32([1, 1])]),
    ("BatchBucketOneHot", [f32([2, 3], [4, 1], [2, 5]), i32(2, 3), f32(0.1, 2.5, 1, 3.1, 4.5)], {},
     [f32([0, 1, 0, 0, 1, 0, 0], [0, 0, 1, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0, 1])]),
    # one step of a recurrent network: the second sequence is over
    ("LSTMUnit", [H[None], C[None], GATES, i32(2, 1), i32(1)], {}, [f32([[HIDDEN], [0.25]]), f32([[CELL], [3]])]),
    ("LSTMUnit", [H[None], C[None], GATES, i32(2, 1), i32(1)], {"drop_states": 1}, [f32([[HIDDEN], [0]]), f32([[CELL], [0]])]),
    ("LSTMUnit", [H[None, :1], C[None, :1], GATES[:, :1], i32(9)], {"sequence_lengths": 0, "forget_bias": 1.0},
     [f32([[sigmoid(-1) * np.tanh(BIASED)]]), f32([[BIASED]])]),
    ("GRUUnit", [H[None], GATES[..., :3], i32(2, 0), i32(0)], {}, [f32([[GRU], [0.25]])]),
    ("GRUUnit", [H[None], GATES[..., :3], i32(2, 0), i32(0)], {"drop_states": True}, [f32([[GRU], [0]])]),
    ("GRUUnit", [H[None, :1], GATES[:, :1, :3], i32(0)], {"sequence_lengths": False}, [f32([[GRU]])]),
]  # fmt: skip
ERRORS = [
    # where Caffe2 reads or writes outside its memory, or takes what does not fit
    ("GatherRanges", [f32(1, 2), i32([[-1, 1]])], {}, OpIndexError, r"GatherRanges: gather_ranges: ranges\[0, 0\] starts at -1"),
    ("GatherRangesToDense", [f32(1, 2), i32([[1, 2]])], {"lengths": [2]}, OpIndexError, r"ranges\[0, 0\] starts at 1 and has length 2"),
    ("GatherRangesToDense", [f32(1, 2), i32([[1, 1]])], {"lengths": [2], "min_observation": 1}, OpError, "1 of 1 ranges of feature 0 are of another length"),
    ("GatherRangesToDense", [f32(1, 2), i32([[1, 0]])], {"lengths": [2], "min_observation": 1, "max_empty_ratio": 0.5}, OpError, "feature 0 are empty"),
    ("GatherRangesToDense", [f32(1, 2), i32([[1, 0]])], {"lengths": [0]}, OpError, r"lengths\[0\] is 0, expected 1 or more"),
    ("SparseToDense", [i32(-1), f32(1)], {}, OpIndexError, r"SparseToDense: sparse_to_dense: indices\[0\] = -1"),
    ("SparseToDense", [i32(2), f32(1), f32(0, 0)], {}, OpIndexError, r"indices\[0\] = 2 is outside \[0, 2\)"),
    ("SparseToDenseMask", [i32(1), f32(1), np.float32(0), i32(0)], {"mask": [1]}, LodError, "SparseToDenseMask: sparse_to_dense_mask"),
    ("SparseToDenseMask", [i32(-1, -1), f32(1, 1), np.float32(0), i32(1, 1)], {"mask": [1], "max_skipped_indices": 2}, OpError, "2 examples have negative ids"),
    ("SparseToDenseMask", [i32(1), f32(1), np.float32(0)], {"mask": [-1]}, OpError, r"mask is \[-1\], expected one id or more"),
    ("SparseToDenseMask", [i32(1), f32(1), np.float64(0)], {"mask": [1]}, OpTypeError, "default is float64"),
    ("BatchSparseToDense", [i32(1), i32(-1), f32(1)], {"dense_last_dim": 2}, OpIndexError, r"indices\[0\] = -1 is outside \[0, 2\)"),
    ("BatchSparseToDense", [i32(1), i32(0), f32(1)], {}, OpError, "dense_last_dim is missing"),
    ("BatchSparseToDense", [i32(1), i32(0), f32(1), f32([1])], {"dense_last_dim": 2}, OpError, "dense_last_dim is 2, expected 1"),
    ("BatchDenseToSparse", [i32(1), i32(2), f32([1, 2])], {}, OpIndexError, r"indices\[0\] = 2 is outside \[0, 2\)"),
    ("SegmentOneHot", [i32(1), i64(3), i64(3)], {}, OpIndexError, r"indices\[0\] = 3 is outside \[0, 3\)"),
    ("OneHot", [i64(3), i64(3)], {}, OpIndexError, r"OneHot: one_hot: x\[0\] = 3"),
    ("BatchBucketize", [f32([1]), i32(1), f32(1), i32(1)], {}, OpIndexError, r"columns\[0\] = 1 is outside \[0, 1\)"),
    ("BatchBucketize", [f32([1]), i32(0), f32(2, 1), i32(2)], {}, OpError, r"boundaries\[1\] = 1.0 is below"),
    ("BatchBucketOneHot", [f32([1, 2]), i32(1, 0), f32(2)], {}, OpError, r"lengths\[1\] is 0, expected 1 or more"),
    ("Bucketize", [f32(1)], {"boundaries": [2.0, 1.0]}, OpError, "expected no decrease"),
    ("MergeIdLists", [i32(1), i32(1, 2)], {}, LodError, "MergeIdLists: merge_id_lists"),
    ("MergeIdLists", [i32(1)], {}, OpError, "found 1 inputs, expected lengths, data, alternating"),
    # where it says no, too
    ("Partition", [i32(1), f32(1, 2)], {"num_outputs": 2}, ShapeError, r"input 1 is \(2,\), expected it to begin with \(1,\)"),
    ("Partition", [i32(1), f32(1)], {"num_outputs": 3}, OpError, "num_outputs is 3, expected a multiple of the 2 inputs"),
    ("Partition", [i32(1)], {}, OpError, "the argument num_outputs is missing"),
    ("LengthsPartition", [i32(2), i32(1)], {"num_outputs": 2}, LodError, "LengthsPartition: partition_sequences"),
    ("GatherByKey", [i32(0, 2), f32(1), f32(1)], {}, ShapeError, r"shards\[0\] has 1 rows, expected 2"),
    ("KeySplit", [i64(3)], {"categorical_limit": 3}, OpIndexError, r"KeySplit: key_split: keys\[0\] = 3"),
    ("SplitByLengths", [f32(1, 2), i32(1, 2)], {"axis": 0, "num_outputs": 2}, ShapeError, "add up to 3"),
    ("SplitByLengths", [f32(1, 2, 3), i32(1, 1)], {"axis": 0, "num_outputs": 2, "use_scaling_lengths": 1}, ShapeError, r"sum\(lengths\) is 2"),
    ("SplitByLengths", [f32(1, 2, 3), i32(1, 1)], {"axis": 0, "num_outputs": 3}, ShapeError, "expected a multiple of num_outputs = 3"),
    ("RemoveDataBlocks", [f32(1), i32(1)], {}, OpIndexError, r"RemoveDataBlocks: remove_rows: indices\[0\] = 1"),
    ("IndexHash", [i32(1)], {"modulo": 0}, OpError, "IndexHash: modulo is 0, expected an integer, 1 or more"),
    ("IndexHash", [i32(1)], {"modulo": 2**31}, OpError, "num_buckets is 2147483648, more than int32 can hold"),
    ("Find", [i32(1), i32(2)], {"missing_value": 2**40}, OpError, "more than int32 can hold"),
    ("LSTMUnit", [H, C, GATES, i32(2, 1), i32(1)], {}, ShapeError, r"hidden_prev is \(2, 1\), expected \(1, sequences, width\)"),
    ("LSTMUnit", [H[None], C[None], GATES, i32(2), i32(1)], {}, ShapeError, "seq_lengths is int32"),
    ("LSTMUnit", [H[None], C[None], GATES, i32(2)], {}, OpError, "expected lengths and a timestep as the last inputs"),
    ("GRUUnit", [H[None], GATES, i32(2, 1), i32(1)], {}, ShapeError, r"gates is \(1, 2, 4\), expected \(1, 2, 3\)"),
]  # fmt: skip
