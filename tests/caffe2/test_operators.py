"""Caffe2's calls, replayed: one known answer for every operator, its surprises, and its memory errors as ours."""

import numpy as np
import pytest
from caffe2_features import ERRORS as ERRORS_OF_FEATURES
from caffe2_features import EXAMPLES as EXAMPLES_OF_FEATURES
from caffe2_ids import ERRORS as ERRORS_OF_IDS
from caffe2_ids import EXAMPLES as EXAMPLES_OF_IDS
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from replay import TABLE, names, run
from replay.adapter import ADAPTERS
from typed_arrays import f32, i32

import seqflow as sf
from seqflow import registry
from seqflow.errors import LodError, OpError, OpIndexError, OpTypeError, ShapeError, UnknownOpError

ROWS, IDS = f32([1, 2], [3, -4], [5, 6]), [0, 0, 1]
E, PI = np.e, np.pi
BYTES = np.array([[0, 255], [1, 2]], np.uint8)
FUSED8 = np.array([[0, 255, *f32(1, 0).tobytes()]], np.uint8)
HALF8 = np.array([[0, 255, *np.float16([1, 0]).tobytes()]], np.uint8)
FUSED4 = np.array([[0xF0, *np.float16([1, 0]).tobytes()]], np.uint8)
FUSED2 = np.array([[0b10011100, *np.float16([1, 0]).tobytes()]], np.uint8)
FUSED = [
    (8, FUSED8, f32([0, 510], [0, 0])),
    (4, FUSED4, f32([0, 30], [0, 0])),
    (2, FUSED2, f32([0, 6, 2, 4], [0] * 4)),
]
INF = np.inf
EXAMPLES = [
    # describing structure
    ("LengthsToOffsets", [i32(2, 0, 1)], {}, [i32(0, 2, 2)]),
    ("LengthsToOffsets", [i32(2, 0, 1)], {"include_last_offset": True}, [i32(0, 2, 2, 3)]),
    ("LengthsToOffsets", [i32()], {"include_last_offset": 1}, [i32(0)]),
    ("LengthsToRanges", [i32(2, 0, 1)], {}, [i32([0, 2], [2, 0], [2, 1])]),
    ("LengthsToSegmentIds", [i32(2, 0, 1)], {}, [i32(0, 0, 2)]),
    ("LengthsToSegmentIds", [i32(0, 0)], {}, [i32()]),
    ("LengthsRangeFill", [i32(2, 0, 3)], {}, [i32(0, 1, 0, 1, 2)]),
    ("LengthsToShape", [i32(3, 3)], {}, [i32(2, 3)]),
    ("LengthsToWeights", [i32(4, 0, 1)], {}, [f32(0.5, 0.5, 0.5, 0.5, 1)]),
    ("LengthsToWeights", [i32(2, 1)], {"power": 1.0}, [f32(0.5, 0.5, 1)]),
    ("LengthsSplit", [i32(9, 4, 0)], {"n_split": 3}, [i32(3, 3, 3, 2, 1, 1, 0, 0, 0)]),
    ("LengthsSplit", [i32(9), i32(2)], {"n_split": 3}, [i32(5, 4)]),
    ("SegmentIdsToLengths", [i32(1, 1, 3)], {}, [i32(0, 2, 0, 1)]),
    ("SegmentIdsToLengths", [i32(0), f32(1, 2, 3)], {}, [i32(1, 0, 0)]),
    ("SegmentIdsToRanges", [i32(0, 0, 2)], {}, [i32([0, 2], [2, 0], [2, 1])]),
    ("SegmentIdsToRanges", [i32(1), f32(1, 2, 3)], {}, [i32([0, 0], [0, 1], [0, 0])]),
    # reducing
    ("LengthsSum", [ROWS, i32(2, 0, 1)], {}, [f32([4, -2], [0, 0], [5, 6])]),
    ("LengthsMean", [ROWS, i32(2, 0, 1)], {}, [f32([2, -1], [0, 0], [5, 6])]),
    ("LengthsMax", [-ROWS, i32(2, 0, 1)], {}, [f32([-1, 4], [0, 0], [-5, -6])]),
    ("LengthsSum", [f32(), i32()], {}, [f32()]),
    ("LengthsWeightedSum", [ROWS, f32(1, 2, 3), i32(2, 0, 1)], {"grad_on_weights": 1}, [f32([7, -6], [0, 0], [15, 18])]),
    ("LengthsTopK", [f32(1, 3, 3, 5), i32(3, 0, 1)], {"k": 2}, [f32([3, 3], [0, 0], [5, 0]), i32([1, 2], [-1, -1], [0, -1])]),
    ("SortedSegmentSum", [ROWS, i32(*IDS)], {}, [f32([4, -2], [5, 6])]),
    ("SortedSegmentMean", [ROWS, i32(*IDS)], {}, [f32([2, -1], [5, 6])]),
    ("SortedSegmentWeightedSum", [ROWS, f32(1, 2, 3), i32(*IDS)], {}, [f32([7, -6], [15, 18])]),
    ("SortedSegmentRangeSum", [ROWS, i32(*IDS)], {}, [f32([4, -2], [5, 6])]),
    ("SortedSegmentRangeMean", [ROWS, i32(*IDS)], {}, [f32([2, -1], [5, 6])]),
    ("SortedSegmentRangeMax", [ROWS, i32(*IDS)], {}, [f32([3, 2], [5, 6])]),
    ("SortedSegmentRangeLogSumExp", [f32(1000, 1000, -INF), i32(*IDS)], {}, [f32(1000 + np.log(2), -INF)]),
    ("SortedSegmentRangeLogMeanExp", [f32(1000, 1000, 3), i32(*IDS)], {}, [f32(1000, 3)]),
    ("UnsortedSegmentSum", [f32(1, 2, 3), i32(2, 0, 2)], {}, [f32(2, 0, 4)]),
    ("UnsortedSegmentSum", [f32(1, 2, 3), i32(2, 0, 2)], {"num_segments": 4}, [f32(2, 0, 4, 0)]),
    ("UnsortedSegmentMean", [f32(1, 2, 3), i32(2, 0, 2)], {"num_segments": -1}, [f32(2, 0, 2)]),
    ("UnsortedSegmentWeightedSum", [f32(1, 2, 3), f32(1, 1, 2), i32(2, 0, 2)], {}, [f32(2, 0, 7)]),
    # gathering
    ("Gather", [ROWS, i32([2, -3])], {}, [f32([[5, 6], [1, 2]])]),
    ("Gather", [ROWS, i32(1)], {"axis": 1}, [f32([2], [-4], [6])]),
    ("Gather", [ROWS, i32(-2)], {"axis": -1, "wrap_indices": True}, [f32([1], [3], [5])]),
    ("Gather", [ROWS, i32([1], [0], [1])], {"axis": 1, "match_outer": True}, [f32([2], [3], [6])]),
    ("Gather", [np.array(["a", "b"], object), i32(1, 1)], {}, [np.array(["b", "b"], object)]),
    ("Gather", [f32(), i32()], {}, [f32()]),
    ("BatchGather", [ROWS, i32(1, 1)], {}, [f32([2, 2], [-4, -4], [6, 6])]),
    ("BatchGather", [ROWS, i32([1], [0], [1])], {"match_outer": 1}, [f32([2], [3], [6])]),
    ("LengthsGather", [f32(1, 2, 3), i32(2, 0, 1), i32(2, 0, 2)], {}, [f32(3, 1, 2, 3)]),
    ("LengthsGather", [["a", "b", "c"], i32(2, 0, 1), i32(2, 0)], {}, [np.array(["c", "a", "b"], object)]),
    ("SparseLengthsSum", [ROWS, i32(0, 2, 0), i32(2, 0, 1)], {}, [f32([6, 8], [0, 0], [1, 2])]),
    # pooling
    ("SparseLengthsMean", [ROWS, i32(0, 2, 0), i32(2, 0, 1)], {}, [f32([3, 4], [0, 0], [1, 2])]),
    ("SparseLengthsMax", [ROWS, i32(0, 1, 0), i32(2, 0, 1)], {}, [f32([3, 2], [0, 0], [1, 2])]),
    ("SparseLengthsWeightedSum", [ROWS, f32(1, 2, 3), i32(0, 2, 0), i32(2, 0, 1)], {"grad_on_weights": 1},
     [f32([11, 14], [0, 0], [3, 6])]),
    ("SparseLengthsPositionalWeightedSum", [ROWS, f32(1, 2, 3), i32(0, 2, 0), i32(2, 0, 1)], {},
     [f32([11, 14], [0, 0], [1, 2])]),
    ("SparseSortedSegmentSum", [ROWS, i32(0, 2, 0), i32(*IDS)], {}, [f32([6, 8], [1, 2])]),
    ("SparseSortedSegmentMean", [ROWS, i32(0, 2, 0), i32(*IDS)], {}, [f32([3, 4], [1, 2])]),
    ("SparseSortedSegmentWeightedSum", [ROWS, f32(1, 2, 3), i32(0, 2, 0), i32(*IDS)], {}, [f32([11, 14], [3, 6])]),
    ("SparseUnsortedSegmentSum", [ROWS, i32(0, 2, 0), i32(2, 0, 2)], {}, [f32([5, 6], [0, 0], [2, 4])]),
    ("SparseUnsortedSegmentMean", [ROWS, i32(0, 2, 1), i32(2, 0, 2)], {"num_segments": 4},
     [f32([5, 6], [0, 0], [2, -1], [0, 0])]),
    ("SparseUnsortedSegmentWeightedSum", [ROWS, f32(1, 2, 3), i32(0, 2, 0), i32(2, 0, 2)], {"num_segments": -1},
     [f32([10, 12], [0, 0], [4, 8])]),
    # quantised rows
    ("FloatToFused8BitRowwiseQuantized", [f32([0, 255])], {}, [FUSED8]),
    ("HalfFloatToFused8BitRowwiseQuantized", [np.float16([[0, 255]])], {}, [FUSED8]),
    ("FloatToFused8BitRowwiseQuantizedHalfScaleBias", [f32([0, 255])], {}, [HALF8]),
    ("HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias", [np.float16([[0, 255]])], {}, [HALF8]),
    ("FloatToFused4BitRowwiseQuantized", [f32([0, 15])], {}, [FUSED4]),
    ("HalfToFused4BitRowwiseQuantized", [np.float16([[0, 15]])], {}, [FUSED4]),
    ("FloatToFused2BitRowwiseQuantized", [f32([0, 3, 1, 2])], {}, [FUSED2]),
    ("HalfToFused2BitRowwiseQuantized", [np.float16([[0, 3, 1, 2]])], {}, [FUSED2]),
    ("FloatToFused8BitRowwiseQuantized", [f32([[0, 255]])], {}, [FUSED8[None]]),
    ("Fused8BitRowwiseQuantizedToFloat", [FUSED8], {}, [f32([0, 255])]),
    ("Fused8BitRowwiseQuantizedToHalfFloat", [FUSED8], {}, [np.float16([[0, 255]])]),
    ("Fused8BitRowwiseQuantizedHalfScaleBiasToFloat", [HALF8], {}, [f32([0, 255])]),
    ("Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat", [HALF8], {}, [np.float16([[0, 255]])]),
    ("Fused4BitRowwiseQuantizedToFloat", [FUSED4], {}, [f32([0, 15])]),
    ("Fused4BitRowwiseQuantizedToHalf", [FUSED4], {}, [np.float16([[0, 15]])]),
    ("Fused2BitRowwiseQuantizedToFloat", [FUSED2], {}, [f32([0, 3, 1, 2])]),
    ("Fused2BitRowwiseQuantizedToHalf", [FUSED2], {}, [np.float16([[0, 3, 1, 2]])]),
    ("GatherFused8BitRowwise", [FUSED8, i32(0, 0)], {}, [f32([0, 255], [0, 255])]),
    *[(f"SparseLengthsSumFused{bits}BitRowwise", [table, i32(0, 0), i32(2, 0)], {}, [sums])
      for bits, table, sums in FUSED],
    *[(f"SparseLengthsMeanFused{bits}BitRowwise", [table, i32(0, 0), i32(2, 0)], {}, [sums / 2])
      for bits, table, sums in FUSED],
    *[(f"SparseLengthsWeightedSumFused{bits}BitRowwise", [table, f32(3, 1), i32(0, 0), i32(2, 0)], {}, [sums * 2])
      for bits, table, sums in FUSED],
    *[(f"SparseLengthsSum{bits}BitRowwiseSparse", [table, i32(1, 0, 1), i32(3, 0), i32(-1, 0)], {}, [sums])
      for bits, table, sums in FUSED],
    *[(f"SparseLengthsMean{bits}BitRowwiseSparse", [table, i32(1, 0), i32(2, 0), i32(-1, 0)], {}, [sums / 4])
      for bits, table, sums in FUSED],
    *[(f"SparseLengthsWeightedSum{bits}BitRowwiseSparse", [table, f32(1, 1), i32(0, 0), i32(2, 0), i32(0)], {}, [sums])
      for bits, table, sums in FUSED],
    ("FloatToRowwiseQuantized8Bits", [f32([0, 255], [3, 3])], {},
     [np.array([[0, 255], [0, 0]], np.uint8), f32([1, 0], [1, 3])]),
    ("FloatToRowwiseQuantized8Bits", [f32([0, 0.5, 255])], {}, [np.array([[0, 1, 255]], np.uint8), f32([1, 0])]),
    ("Rowwise8BitQuantizedToFloat", [BYTES, f32([1, 0], [2, 1])], {}, [f32([0, 255], [3, 5])]),
    ("SparseLengthsSum8BitsRowwise", [BYTES, i32(0, 1), i32(2, 0), f32([1, 0], [2, 1])], {}, [f32([3, 260], [0, 0])]),
    ("SparseLengthsMean8BitsRowwise", [BYTES, i32(1, 1), i32(2, 0), f32([1, 0], [2, 1])], {}, [f32([3, 5], [0, 0])]),
    ("SparseLengthsWeightedSum8BitsRowwise", [BYTES, f32(2), i32(1), i32(1), f32([1, 0], [2, 1])], {}, [f32([6, 10])]),
    ("SparseLengthsWeightedMean8BitsRowwise", [BYTES, f32(1, 3), i32(1, 1), i32(2, 0), f32([1, 0], [2, 1])], {},
     [f32([6, 10], [0, 0])]),
    ("SparseLengthsSumSparseLookup", [i32(0, 2, 1), i32(2, 1), i32(1, -1, 0)], {}, [i32(1, 0), i32(2, 0)]),
    ("SparseLengthsSumSparseLookup", [i32(0, 2, 1), i32(2, 1), i32(1, -1, 0), f32(5, 6, 7)], {},
     [i32(1, 0), i32(2, 0), f32(5, 6)]),
    # padding
    ("PackSegments", [i32(2, 0, 1), f32(1, 2, 3)], {}, [f32([1, 2], [0, 0], [3, 0])]),
    ("PackSegments", [i32(2, 1), f32(1, 2, 3)], {"max_length": 1, "return_presence_mask": True},
     [f32([1], [3]), np.array([[True], [True]])]),
    ("PackSegments", [i32(2, 1), f32(1, 2, 3)], {"pad_minf": 1}, [f32([1, 2], [3, -INF])]),
    ("PackSegments", [i32(2, 1), i32(1, 2, 3)], {"pad_minf": 1}, [i32([1, 2], [3, 0])]),
    ("PackSegments", [i32(2, 1), ["a", "b", "c"]], {}, [np.array([["a", "b"], ["c", ""]], object)]),
    ("PackSegments", [i32(0, 0), f32()], {"max_length": 2, "return_presence_mask": True},
     [f32([0, 0], [0, 0]), np.zeros((2, 2), bool)]),
    ("PackSegments", [i32(), np.zeros((0, 3), np.float32)], {}, [np.zeros((0, 0, 3), np.float32)]),
    ("UnpackSegments", [i32(2, 0, 1), f32([1, 2], [0, 0], [3, 0])], {}, [f32(1, 2, 3)]),
    ("UnpackSegments", [i32(5, 1), f32([1, 2], [3, 0])], {"max_length": 2}, [f32(1, 2, 3)]),
    ("PackRNNSequence", [f32([1], [2], [3]), i32(2, 0, 1)], {}, [f32([[1], [0], [3]], [[2], [0], [0]])]),
    ("UnpackRNNSequence", [f32([[1], [0], [3]], [[2], [0], [0]]), i32(2, 0, 1)], {}, [f32([1], [2], [3])]),
    ("AddPadding", [f32(1, 2, 3), i32(2, 0, 1)], {}, [f32(0, 1, 2, 0, 0, 0, 0, 3, 0), i32(4, 2, 3)]),
    ("AddPadding", [f32(1, 2), i32(1, 1), f32(7), f32(8)], {"padding_width": 1, "end_padding_width": 2},
     [f32(7, 1, 8, 8, 7, 2, 8, 8), i32(4, 4)]),
    ("AddPadding", [f32([1, 2]), i32(1), f32([5, 6])], {}, [f32([5, 6], [1, 2], [5, 6]), i32(3)]),
    ("AddPadding", [f32(1, 2)], {"end_padding_width": 0}, [f32(0, 1, 2), i32(3)]),
    ("RemovePadding", [f32(0, 1, 2, 0, 0, 0, 0, 3, 0), i32(4, 2, 3)], {}, [f32(1, 2, 3), i32(2, 0, 1)]),
    ("RemovePadding", [f32(0, 1, 2)], {"end_padding_width": 0}, [f32(1, 2), i32(2)]),
    ("GatherPadding", [f32(5, 1, 2, 6, 5, 6), i32(4, 2)], {}, [np.float32(10), np.float32(12)]),
    ("LengthsPad", [f32(1, 2, 3), i32(2, 0, 1)], {"target_length": 2}, [f32(1, 2, -1, -1, 3, -1)]),
    ("LengthsPad", [i32(1), i32(1)], {"target_length": 2, "padding_value": 7.5}, [i32(1, 7)]),
    ("PadEmptySamples", [i32(2, 0), f32([1], [2]), ["a", "b"]], {},
     [i32(2, 1), f32([1], [2], [0]), np.array(["a", "b", ""], object)]),
    ("SequenceMask", [f32([1, 2], [3, 4]), i32(1, 5)], {"mode": "sequence"}, [f32([1, -INF], [3, 4])]),
    ("SequenceMask", [f32([1, 2, 3]), i32(2)], {"mode": "window", "radius": 1, "fill_val": 0.0}, [f32([0, 2, 3])]),
    ("SequenceMask", [f32([1, 2], [3, 4])], {"mode": "upper"}, [f32([1, -INF], [3, 4])]),
    ("SequenceMask", [f32([1, 2], [3, 4])], {"mode": b"lower", "fill_val": 9}, [f32([1, 2], [9, 4])]),
    ("SequenceMask", [f32([1, 2], [3, 4]), i32(0, 0)], {"mode": "upperdiag", "grad": True}, [f32([0, 0], [3, 0])]),
    ("SequenceMask", [f32([1, 2], [3, 4])], {"mode": "lowerdiag", "grad": 1}, [f32([0, 2], [0, 0])]),
    ("VariableLengthSequencePadding", [f32([[1], [2]], [[3], [4]]), i32(2, 1)], {}, [f32([[1], [2]], [[3], [0]])]),
    # rearranging
    ("LengthsTile", [ROWS, i32(2, 0, 1)], {}, [f32([1, 2], [1, 2], [5, 6])]),
    ("LengthsTile", [["a", "b"], i32(0, 2)], {}, [np.array(["b", "b"], object)]),
    ("ReversePackedSegs", [f32([[1], [4]], [[2], [9]], [[3], [9]]), i32(3, 1)], {}, [f32([[3], [4]], [[2], [9]], [[1], [9]])]),
    ("BooleanMask", [f32(1, 2, 3), np.array([True, False, True])], {}, [f32(1, 3), np.array([0, 2])]),
    ("BooleanMaskLengths", [i32(2, 0, 1), np.array([True, False, True])], {}, [i32(1, 0, 1)]),
    ("BooleanMaskLengths", [np.array([1]), np.array([True])], {}, [np.array([1])]),
    ("BooleanUnmask", [np.array([True, False, True]), f32(1, 2), np.array([False, True, True]), f32(3)], {}, [f32(1, 3, 2)]),
    ("SparseDropoutWithReplacement", [np.array([5, 6, 7]), i32(2, 0, 1)], {"ratio": 1.0, "replacement_value": 3},
     [np.array([3, 3, 3]), i32(1, 1, 1)]),
    ("SparseDropoutWithReplacement", [np.array([5, 6, 7]), i32(2, 0, 1)], {}, [np.array([5, 6, 7]), i32(2, 0, 1)]),
    ("SparseItemwiseDropoutWithReplacement", [np.array([5, 6, 7]), i32(2, 0, 1)], {"ratio": 1.0, "replacement_value": 3},
     [np.array([3, 3, 3]), i32(2, 0, 1)]),
    ("TrimDataset", [i32(9, 8, 7), i32(1, 2, 1), i32(0, 1, 2, 5), f32(1, 2, 3, 4, 5, 6, 7, 8), ["p", "q", "r", "s"]],
     {"fields": ["a", "b:lengths", "b:values:lengths", "b:values:values", "b:c"], "multiple_of": 2},
     [i32(9, 8), i32(1, 2), i32(0, 1, 2), f32(1, 2, 3), np.array(["p", "q", "r"], object)]),
    ("TrimDataset", [i32(9, 8)], {"fields": ["a"], "multiple_of": 2}, [i32(9, 8)]),
    ("CTCGreedyDecoder", [np.eye(3, dtype=np.float32)[[[1, 0], [1, 2], [0, 2], [1, 1]]], i32(4, 3)], {},
     [i32(2, 1), i32(1, 1, 2)]),
    ("CTCGreedyDecoder", [np.eye(3, dtype=np.float32)[[[1], [1], [0], [1]]]], {"merge_repeated": 0}, [i32(3), i32(1, 1, 1)]),
    # dense
    ("FC", [f32([[1, 2]], [[3, 4]]), f32([1, 1], [0, 1]), f32(0, 10)], {}, [f32([3, 12], [7, 14])]),
    ("FC", [f32([[1, 2]]), f32([1, 1], [0, 1]), f32(0, 10)], {"axis": 2}, [f32([[3, 12]])]),
    ("FCTransposed", [f32([1, 2]), f32([1, 0], [1, 1]), f32(0, 10)], {}, [f32([3, 12])]),
    ("BatchMatMul", [f32([[1, 2]]), f32([[3, 4]])], {"trans_b": 1}, [f32([[11]])]),
    ("Softmax", [f32([[0], [0]])], {}, [f32([[0.5], [0.5]])]),
    ("LayerNorm", [f32([[1], [3]])], {"epsilon": 0.0}, [f32([[-1], [1]]), f32([2]), f32([1])]),
    ("LayerNorm", [f32([1, 3]), f32(2, 2), f32(5, 5)], {"epsilon": 0.0, "elementwise_affine": True}, [f32([3, 7]), f32([2]), f32([1])]),
    ("Dropout", [f32(1, 2)], {"is_test": 1}, [f32(1, 2), np.array([True, True])]),
    ("Dropout", [f32(1, 2)], {"ratio": 1.0}, [f32(0, 0), np.array([False, False])]),
    ("SquareRootDivide", [f32([2], [3]), i32(4, 0)], {}, [f32([1], [3])]),
    ("Cast", [f32(1.5, -2.5)], {"to": 2}, [i32(1, -2)]),
    ("Cast", [i32(0, 3)], {"to": "bool"}, [np.array([False, True])]),
    ("Reshape", [ROWS], {"shape": [-1, 0, 1]}, [ROWS[:, :, None], np.array([3, 2])]),
    ("Reshape", [ROWS, i32(2, -1)], {}, [ROWS.reshape(2, 3), i32(3, 2)]),
    ("Transpose", [ROWS], {}, [ROWS.T]),
    ("Transpose", [ROWS[None]], {"axes": [1, 0, 2]}, [ROWS[:, None]]),
    ("ExpandDims", [f32(1, 2)], {"dims": [0, 2, 0]}, [f32([[1], [2]])]),
    ("Squeeze", [f32([[1], [2]])], {"dims": [0, 2]}, [f32(1, 2)]),
    ("Concat", [f32([1, 2]), f32([3])], {"axis": 1}, [f32([1, 2, 3]), i32(2, 1)]),
    ("Concat", [f32([1, 2]), f32([3])], {"order": "NCHW"}, [f32([1, 2, 3]), i32(2, 1)]),
    ("Concat", [f32(1, 2), f32(3, 4)], {"axis": 0, "add_axis": 1}, [f32([1, 2], [3, 4]), i32(1, 1)]),
    ("Concat", [["a"], ["b", "c"]], {"axis": 0}, [np.array(["a", "b", "c"], object), i32(1, 2)]),
    ("Split", [f32(1, 2, 3)], {"axis": 0, "split": [1, 2]}, [f32(1), f32(2, 3)]),
    ("Split", [f32(1, 2, 3), i32(3, 0)], {"axis": 0}, [f32(1, 2, 3), f32()]),
    ("Split", [f32([1, 2], [3, 4])], {"axis": 0, "num_outputs": 2, "add_axis": True}, [f32(1, 2), f32(3, 4)]),
    ("Tile", [f32([1, 2])], {"tiles": 2, "axis": 1}, [f32([1, 2, 1, 2])]),
    ("Tile", [f32([1, 2]), i32(3), i32(0)], {}, [f32([1, 2], [1, 2], [1, 2])]),
    ("Slice", [ROWS], {"starts": [1, 0], "ends": [-1, 1]}, [f32([3], [5])]),
    ("Slice", [ROWS, i32(0), i32(-2)], {}, [ROWS[:2]]),
    ("ReduceSum", [ROWS], {"axes": [1]}, [f32([3], [-1], [11])]),
    ("ReduceMean", [ROWS], {"axes": [0], "keepdims": 0}, [f32(3, 4 / 3)]),
    ("ReduceMax", [ROWS], {}, [f32([6])]),
    # element by element
    ("Abs", [f32(-2, 3)], {}, [f32(2, 3)]),
    ("Acos", [f32(1, -1)], {}, [f32(0, PI)]),
    ("Asin", [f32(0, 1)], {}, [f32(0, PI / 2)]),
    ("Atan", [f32(0, 1)], {}, [f32(0, PI / 4)]),
    ("Ceil", [f32(1.2, -1.2)], {}, [f32(2, -1)]),
    ("Cos", [f32(0, PI)], {}, [f32(1, -1)]),
    ("Cosh", [f32(0)], {}, [f32(1)]),
    ("Erf", [f32(0, INF)], {}, [f32(0, 1)]),
    ("Exp", [f32(0, 1)], {}, [f32(1, E)]),
    ("Floor", [f32(1.2, -1.2)], {}, [f32(1, -2)]),
    ("Log", [f32(1, 0)], {}, [f32(0, -INF)]),
    ("Log1p", [f32(0, E - 1)], {}, [f32(0, 1)]),
    ("Negative", [i32(1, -2)], {}, [i32(-1, 2)]),
    ("Not", [np.array([True, False])], {}, [np.array([False, True])]),
    ("Reciprocal", [f32(4)], {}, [f32(0.25)]),
    ("Relu", [f32(-1, 2)], {}, [f32(0, 2)]),
    ("Rsqrt", [f32(4)], {}, [f32(0.5)]),
    ("Sigmoid", [f32(0)], {}, [f32(0.5)]),
    ("Sign", [f32(-2, 0, 3)], {}, [f32(-1, 0, 1)]),
    ("Sin", [f32(0, PI / 2)], {}, [f32(0, 1)]),
    ("Sinh", [f32(0)], {}, [f32(0)]),
    ("Sqr", [f32(3)], {}, [f32(9)]),
    ("Sqrt", [f32(9)], {}, [f32(3)]),
    ("Tan", [f32(0, PI / 4)], {}, [f32(0, 1)]),
    ("Tanh", [f32(0, INF)], {}, [f32(0, 1)]),
    ("Add", [f32([1, 2], [3, 4]), f32(10, 20)], {"broadcast": 1}, [f32([11, 22], [13, 24])]),
    ("Add", [f32([1, 2], [3, 4]), f32(10, 20)], {"broadcast": 1, "axis": 0}, [f32([11, 12], [23, 24])]),
    ("Add", [f32([[[1, 2]]]), f32(10)], {"broadcast": 1, "axis_str": "C"}, [f32([[[11, 12]]])]),
    ("Sub", [f32(1, 2), f32(1)], {}, [f32(0, 1)]),
    ("Mul", [f32(1, 2), f32(3, 4)], {}, [f32(3, 8)]),
    ("Div", [f32(1, 2), f32(4)], {}, [f32(0.25, 0.5)]),
    ("Div", [i32(-7, 7), i32(2, -2)], {}, [i32(-3, -3)]),
    ("Pow", [f32(2, 3)], {"exponent": 2.0}, [f32(4, 9)]),
    ("Pow", [f32(2, 3), f32(2)], {"broadcast": 1}, [f32(4, 9)]),
    ("Mod", [i32(-7, 7)], {"divisor": 4}, [i32(-3, 3)]),
    ("Mod", [i32(-7, 7)], {"divisor": 4, "sign_follow_divisor": True}, [i32(1, 3)]),
    ("Clip", [f32(-5, 5)], {"min": -1.0, "max": 1.0}, [f32(-1, 1)]),
    ("Clip", [f32(INF, -1)], {"min": 0.0}, [np.array([np.finfo(np.float32).max, 0], np.float32)]),
    ("Where", [np.array([True, False]), f32([1, 2], [3, 4]), f32([5, 6], [7, 8])], {"broadcast_on_rows": 1}, [f32([1, 2], [7, 8])]),
    ("Where", [np.array([True, False]), ["a", "b"], ["c", "d"]], {}, [np.array(["a", "d"], object)]),
    ("Sum", [f32(1), f32(2), f32(3)], {}, [f32(6)]),
    ("Max", [f32(1, 5), f32(2, 4)], {}, [f32(2, 5)]),
    ("Min", [f32(1, 5), f32(2, 4), f32(3, 0)], {}, [f32(1, 0)]),
    ("EQ", [i32(1, 2), i32(1, 3)], {}, [np.array([True, False])]),
    ("NE", [i32(1, 2), i32(1, 3)], {}, [np.array([False, True])]),
    ("LT", [i32(1, 2), i32(1, 3)], {}, [np.array([False, True])]),
    ("LE", [i32(1, 4), i32(1, 3)], {}, [np.array([True, False])]),
    ("GT", [i32(1, 4), i32(1, 3)], {}, [np.array([False, True])]),
    ("GE", [i32(1, 2), i32(1, 3)], {}, [np.array([True, False])]),
    ("And", [np.array([True, True]), np.array([True, False])], {}, [np.array([True, False])]),
    ("Or", [np.array([False, True]), np.array([False, False])], {}, [np.array([False, True])]),
    ("Xor", [np.array([True, True]), np.array([True, False])], {}, [np.array([False, True])]),
    ("BitwiseAnd", [i32(6), i32(3)], {}, [i32(2)]),
    ("BitwiseOr", [i32(6), i32(3)], {}, [i32(7)]),
    ("BitwiseXor", [i32(6), i32(3)], {}, [i32(5)]),
    *EXAMPLES_OF_IDS,
    *EXAMPLES_OF_FEATURES,
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "inputs", "arguments", "outputs"),
    EXAMPLES,
    ids=[f"{row[0]}{i}" for i, row in enumerate(EXAMPLES)],
)
def test_an_operator_gives_what_caffe2_gives(name, inputs, arguments, outputs):
    found = run(name, inputs, **arguments)
    assert len(found) == len(outputs)
    for ours, expected in zip(found, outputs, strict=True):
        assert isinstance(ours, np.ndarray)
        assert ours.dtype == expected.dtype
        assert ours.shape == expected.shape
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)
        else:
            np.testing.assert_array_equal(ours, expected)


def test_every_operator_has_an_example():
    assert {row[0] for row in EXAMPLES} == set(names())


def test_no_operator_is_two_ops():
    declared = [
        origin for name in registry.names() for origin in (registry.get(name).caffe2 or "").split(", ")
    ]
    assert sorted(filter(None, declared)) == names()


def test_what_is_adapted_is_an_operator_that_an_op_declares():
    assert set(ADAPTERS) <= set(TABLE)


ERRORS = [
    # how it is called
    ("PackSegment", [], {}, UnknownOpError, r"'PackSegment' is not a covered operator of Caffe2 \(did you mean 'PackSegments'\?\)"),
    ("PackSegments", [i32(1)], {}, OpError, "PackSegments: found 1 inputs, expected lengths, data"),
    ("AddPadding", [f32(1)] * 5, {}, OpError, r"AddPadding: found 5 inputs, expected data, \[lengths\], \[start\], \[end\]"),
    ("Concat", [], {"axis": 0}, OpError, "Concat: found 0 inputs, expected inputs…"),
    ("LengthsSum", f32(1), {}, OpTypeError, "LengthsSum: inputs is ndarray, expected a list of arrays"),
    ("LengthsSum", [f32(1), i32(1)], {"empty": 1}, OpError, "LengthsSum: there is no argument 'empty', it takes none"),
    ("PackSegments", [i32(1), f32(1)], {"max_lenght": 1}, OpError, r"there is no argument 'max_lenght' \(did you mean 'max_length'"),
    ("LengthsTopK", [f32(1), i32(1)], {}, OpError, "LengthsTopK: the argument k is missing, expected an integer, 1 or more"),
    ("LengthsTopK", [f32(1), i32(1)], {"k": 0}, OpError, "LengthsTopK: k is 0, expected an integer, 1 or more"),
    ("SequenceMask", [f32([1])], {"mode": "uper"}, OpError, "SequenceMask: mode is 'uper'"),
    ("LengthsSum", [["a"], i32(1)], {}, OpTypeError, "LengthsSum: data holds strings, expected numbers"),
    ("Gather", [np.array(["a", None], object), i32(1)], {}, OpTypeError, "Gather: data holds None"),
    ("LengthsSplit", [i32(1)], {}, OpError, "LengthsSplit: n_split is missing"),
    ("Split", [f32(1)], {"axis": 0}, OpError, "Split: split is missing"),
    ("Reshape", [f32(1)], {}, OpError, "Reshape: shape is expected"),
    ("Cast", [f32(1)], {"to": 4}, OpError, "Cast: to is 4"),
    ("TrimDataset", [f32(1)], {"fields": "a"}, OpTypeError, "TrimDataset: fields is 'a', expected a list of names"),
    # where Caffe2 reads or writes outside its memory, or leaves results unset
    ("AddPadding", [f32(1, 2), i32(1)], {}, LodError, r"AddPadding: add_padding: sum\(lengths\) is 1 but data has 2 rows"),
    ("RemovePadding", [f32(1), i32(1)], {}, LodError, "RemovePadding: remove_padding: lengths"),
    ("UnpackSegments", [i32(3), f32([1, 2])], {}, ShapeError, "UnpackSegments: unpad: padded.shape"),
    ("UnpackRNNSequence", [f32([[1]]), i32(3)], {}, ShapeError, "UnpackRNNSequence: unpack_by_time"),
    ("PackRNNSequence", [f32(1, 2), i32(1)], {}, LodError, "PackRNNSequence: pack_by_time"),
    ("LengthsTopK", [f32(1), i32(3)], {"k": 1}, LodError, "LengthsTopK: lengths_topk"),
    ("LengthsGather", [f32(1), i32(1), i32(-1)], {}, OpIndexError, "LengthsGather: gather_sequences: indices"),
    ("LengthsToSegmentIds", [i32(-1)], {}, LodError, "LengthsToSegmentIds: lengths_to_segment_ids: lengths"),
    ("LengthsToOffsets", [i32(2, -1)], {}, LodError, "LengthsToOffsets"),
    ("LengthsToOffsets", [np.array([2**31, 1])], {}, OpError, "LengthsToOffsets: the result holds 2147483648, more than"),
    ("SequenceMask", [f32([1], [2]), i32(1)], {"mode": "sequence"}, ShapeError, "SequenceMask: sequence_mask: bounds"),
    ("Gather", [f32(), i32(0)], {}, OpIndexError, "Gather: gather_axis: indices"),
    ("BatchGather", [ROWS, i32(-1)], {}, OpIndexError, "BatchGather: gather_axis: indices"),
    ("BatchGather", [ROWS, i32([2], [0], [0])], {"match_outer": 1}, OpIndexError, r"BatchGather: indices\[0, 0\] = 2 is outside \[0, 2\)"),
    ("Div", [i32(1), i32(0)], {}, OpError, "Div: fmod: an integer is divided by zero"),
    ("Mod", [i32(1)], {"divisor": 0}, OpError, "Mod: fmod: an integer is divided by zero"),
    ("BooleanUnmask", [np.array([False]), f32()], {}, OpError, "BooleanUnmask: boolean_unmask: no mask covers row 0"),
    # where it says no, too
    ("SortedSegmentSum", [f32(1, 2), i32(0, 2)], {}, OpError, "SortedSegmentSum: sorted_segment_sum: ids"),
    ("UnpackSegments", [i32(1), f32([1, 2])], {"max_length": 3}, ShapeError, r"UnpackSegments: packed.shape\[1\] is 2"),
    ("LengthsPad", [f32(1, 2), i32(2)], {"target_length": 1}, LodError, "LengthsPad: pad_lengths: lengths"),
    ("LengthsToShape", [i32(1, 2)], {}, LodError, "LengthsToShape: lengths_to_shape"),
    ("Slice", [f32(1, 2)], {"starts": [1], "ends": [0]}, OpError, r"Slice: ends\[0\] is 0, which is before"),
    ("TrimDataset", [i32(1, 1, 1), i32(0)], {"fields": ["a:lengths", "a:values"], "multiple_of": 2}, LodError,
     "TrimDataset: a:values has 1 rows, expected 2 or more"),
    ("TrimDataset", [i32(1, -1, 1), i32(0)], {"fields": ["a:lengths", "a:values"], "multiple_of": 2}, LodError, "TrimDataset: "),
    *ERRORS_OF_IDS,
    *ERRORS_OF_FEATURES,
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "inputs", "arguments", "kind", "message"),
    ERRORS,
    ids=[f"{row[0]}{i}" for i, row in enumerate(ERRORS)],
)
def test_what_caffe2_gets_wrong_or_refuses_is_our_error(name, inputs, arguments, kind, message):
    with pytest.raises(kind, match=message):
        run(name, inputs, **arguments)


def test_bytes_are_strings_too():
    (padded,) = run("PackSegments", [i32(1, 0), np.array([b"a"], object)])
    assert padded.tolist() == [[b"a"], [b""]]


def test_a_seed_repeats_a_random_operator_and_calls_without_one_differ():
    x = np.ones(1000, np.float32)
    first, again = (run("Dropout", [x], random_seed=7)[1] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (run("Dropout", [x])[1] != run("Dropout", [x])[1]).any()


ANY_ARRAY = hnp.arrays(
    st.sampled_from(["int32", "int64", "float32", "bool", "uint8"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    elements=st.integers(0, 1),
) | st.just(np.array(["a", "b"], object))
ANY_ARGUMENT = {
    "int": st.integers(-3, 4),
    "float": st.sampled_from([-1.0, 0.0, 0.5, INF, np.nan]),
    "bool": st.sampled_from([True, False, 0, 1, 2]),
    "str": st.sampled_from(["", "C", b"W"]),
    "ints": st.lists(st.integers(-2, 4), max_size=3),
    "object": st.sampled_from([1, 10, "FLOAT", None, ["a"], ["a:lengths", "a:values"]]),
}


@pytest.mark.parametrize("name", names())
@given(data=st.data())
@settings(max_examples=settings.default.max_examples // 3)
def test_whatever_it_is_given_the_answer_is_arrays_or_our_error(name, data):
    inputs = data.draw(st.lists(ANY_ARRAY, max_size=4))
    arguments = {
        attribute.name: data.draw(
            ANY_ARGUMENT.get(attribute.kind, st.sampled_from(attribute.choices or ("",)))
        )
        for attribute in TABLE[name].attributes
        if attribute.required or data.draw(st.booleans())
    }
    try:
        outputs, message = run(name, inputs, **arguments), None
    except sf.SeqflowError as error:
        outputs, message = [], str(error)
    assert message is None or message.startswith(f"{name}: ")
    assert all(isinstance(output, np.ndarray) for output in outputs)


def test_gather_padding_with_one_output_adds_both_ends():
    inputs = [np.array([[5.0], [1], [2], [6]]), np.array([4], np.int32)]
    assert [end.tolist() for end in run("GatherPadding", inputs)] == [[5], [6]]
    assert [end.tolist() for end in run("GatherPadding", inputs, num_outputs=1)] == [[11]]
    scalar = run("GatherPadding", [inputs[0].ravel(), inputs[1]], num_outputs=1)
    assert isinstance(scalar[0], np.ndarray)


@pytest.mark.parametrize("shape", [(0, 4), (0,), (3, 0), (0, 2, 3), (2, 0, 3), (0, 0)])
def test_tables_without_elements_are_quantised_and_come_back(shape):
    integers, ends = run("FloatToRowwiseQuantized8Bits", [np.zeros(shape, np.float32)])
    assert (integers.shape, ends.shape) == (shape, (shape[0], 2))
    assert run("Rowwise8BitQuantizedToFloat", [integers, ends])[0].shape == shape
    pooled = run("SparseLengthsSum8BitsRowwise", [integers, np.zeros(0, int), np.array([0, 0]), ends])[0]
    assert pooled.shape == (2, *shape[1:])


def test_a_net_may_leave_out_the_last_outputs():
    inputs = [np.array([1.0, 2, 3]), np.array([True, False, True])]
    assert len(run("BooleanMask", inputs)) == 2
    assert [rows.tolist() for rows in run("BooleanMask", inputs, num_outputs=1)] == [[1, 3]]
    for count in (0, 3, "1"):
        with pytest.raises(OpError, match=r"^BooleanMask: num_outputs is .*, expected 1 to 2"):
            run("BooleanMask", inputs, num_outputs=count)
