"""Known answers of Caffe2's operators on features and on indexes of keys, and their errors."""

import numpy as np
from typed_arrays import f32, i32, i64, texts

from seqflow.errors import LodError, OpError, OpTypeError, ShapeError

YES, NO, FIRST = np.array([True, True]), np.array([False, False]), np.array([True, False])
IDS = {"feature_ids": [11, 12]}
SCALARS = [f32(1, 2), YES, f32(3, 4), FIRST]
LISTS = [i32(2, 0), i64(7, 8), YES, i32(1, 0), i64(9), FIRST]
MAPS = [i32(2, 0), i64(1, 2), f32(7, 8), YES, i32(1, 0), i64(3), f32(9), FIRST]
MULTI = [i32(1, 1), i64(1, 1), i32(0, 2), i64(5, 6)]
MULTI_MAP = [*MULTI[:3], i64(3, 4), f32(5, 6)]

EXAMPLES = [
    ("MergeDenseFeatureTensors", [f32([1, 2], [3, 4]), np.array([[True, False], [True, True]])], IDS,
     [i32(1, 2), i64(11, 11, 12), f32(1, 3, 4)]),
    ("MergeSingleScalarFeatureTensors", SCALARS, IDS, [i32(2, 1), i64(11, 12, 11), f32(1, 3, 2)]),
    ("MergeSingleScalarFeatureTensors", [texts("a", "b"), YES, texts("c", ""), NO], IDS,
     [i32(1, 1), i64(11, 11), texts("a", "b")]),
    ("MergeSingleListFeatureTensors", LISTS, IDS, [i32(2, 1), i64(11, 12, 11), i32(2, 1, 0), i64(7, 8, 9)]),
    ("MergeSingleMapFeatureTensors", MAPS, IDS,
     [i32(2, 1), i64(11, 12, 11), i32(2, 1, 0), i64(1, 2, 3), f32(7, 8, 9)]),
    ("MergeSingleMapFeatureTensors", [i32(1, 0), texts("k"), texts("v"), FIRST], {"feature_ids": [11]},
     [i32(1, 0), i64(11), i32(1), texts("k"), texts("v")]),
    ("MergeMultiScalarFeatureTensors", [i32(1, 1), i64(1, 1), f32(1, 2), i32(0, 1), i64(1), f32(3)], {},
     [i32(1, 2), i64(1, 1, 1), f32(1, 2, 3)]),
    ("MergeMultiListFeatureTensors", MULTI * 2, {},
     [i32(2, 2), i64(1, 1, 1, 1), i32(0, 0, 2, 2), i64(5, 6, 5, 6)]),
    ("MergeMultiMapFeatureTensors", MULTI_MAP, {}, [*MULTI_MAP]),
    ("IndexGet", [i32(700, 30), i32(30, 5, 700)], {}, [i64(2, 0, 1)]),
    ("IndexGet", [texts("a", "b"), texts("b", "c", "")], {}, [i64(2, 0, 0)]),
    ("IndexLoad", [i64(), i64(0, 700, 30)], {"skip_first_entry": 1}, [i64(700, 30)]),
    ("IndexLoad", [texts("x"), texts("a", "b")], {}, [texts("a", "b")]),
    ("IndexFreeze", [i64(700)], {}, [i64(700)]),
    ("IndexStore", [i64(700, 30)], {}, [i64(700, 30)]),
    ("IndexSize", [i64(700, 30)], {}, [i64(3)]),
]  # fmt: skip

ERRORS = [
    ("MergeSingleScalarFeatureTensors", SCALARS[:3], IDS, OpError, "found 3 inputs, expected data, presence, alternating"),
    ("MergeSingleScalarFeatureTensors", SCALARS, {"feature_ids": [1]}, OpError, "feature_ids has 1 entries, expected 2"),
    ("MergeSingleScalarFeatureTensors", SCALARS, {"feature_ids": [1, 1]}, OpError, r"feature_ids\[1\] is 1, which is"),
    ("MergeSingleListFeatureTensors", [*LISTS[:5], NO], IDS, OpError, r"lengths\[1\]\[0\] is 1 but presence\[1\]\[0\] is"),
    ("MergeSingleListFeatureTensors", [i32(9, 0), *LISTS[1:]], IDS, LodError, r"sum\(lengths\) is 9 but data has 2 rows"),
    ("MergeMultiListFeatureTensors", [*MULTI, i32(1), i64(1), i32(0), i64()], {}, ShapeError, r"counts\.shape\[0\] is 1, expected 2"),
    ("MergeSingleMapFeatureTensors", [MAPS[0], f32(1, 2), *MAPS[2:]], IDS, OpTypeError, "keys are float32, int64"),
    ("IndexGet", [i32(1, 1), i32(1)], {}, OpError, r"IndexGet: keys\[1\] is in the index already"),
    ("IndexGet", [i32(1), i64(1)], {}, OpTypeError, "keys are int64, but those of the index are int32"),
    ("IndexGet", [i32(1), texts("a")], {}, OpTypeError, "keys are strings, but those of the index are int32"),
    ("IndexSize", [i32([1])], {}, ShapeError, "handle has 2 dimensions"),
    ("IndexStore", [f32(1)], {}, OpTypeError, "handle is float32, expected integers or strings"),
]  # fmt: skip
