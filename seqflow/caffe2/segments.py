"""Caffe2's segment reducers, also of gathered rows, by lengths and by segment ids.

LengthsMax passes over a NaN that is not the first of its segment in Caffe2; here NaN wins, as in its op.
"""

from seqflow.caffe2.adapter import GRADIENT_ONLY, Adapter, Argument, chosen
from seqflow.signature import Positive

_SEGMENTS = {"num_segments": Argument("num_segments", int, -1, chosen)}
_WEIGHTS = {"grad_on_weights": GRADIENT_ONLY}

ADAPTERS = {
    "LengthsWeightedSum": Adapter(arguments=_WEIGHTS),
    "LengthsTopK": Adapter(outputs="values, int32 positions", arguments={"k": Argument("k", Positive)}),
    "UnsortedSegmentSum": Adapter(arguments=_SEGMENTS),
    "UnsortedSegmentMean": Adapter(arguments=_SEGMENTS),
    "UnsortedSegmentWeightedSum": Adapter(arguments=_SEGMENTS | _WEIGHTS),
    "SparseLengthsWeightedSum": Adapter(arguments=_WEIGHTS),
    "SparseUnsortedSegmentSum": Adapter(arguments=_SEGMENTS),
    "SparseUnsortedSegmentMean": Adapter(arguments=_SEGMENTS),
    "SparseUnsortedSegmentWeightedSum": Adapter(arguments=_SEGMENTS | _WEIGHTS),
}
