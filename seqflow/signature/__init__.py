"""The signature language: parsed once, then bound to arrays on every call and to row spaces in every net."""

from seqflow.signature.attributes import (
    Attribute,
    CountOrSizes,
    Dtype,
    File,
    Fill,
    Ints,
    NonNegative,
    Positive,
    Scalar,
    Sizes,
    Texts,
    read_attributes,
)
from seqflow.signature.bind_arrays import bind, fast_condition
from seqflow.signature.language import Argument, Repeated, Signature
from seqflow.signature.parser import parse
from seqflow.signature.rows import Described, OwnRows, Positions, RowSpace

__all__ = [
    "Argument", "Attribute", "CountOrSizes", "Described", "Dtype", "File", "Fill", "Ints", "NonNegative",
    "Positions", "Positive", "Repeated", "RowSpace", "OwnRows", "Scalar", "Signature", "Sizes", "Texts", "bind",
    "fast_condition", "parse", "read_attributes",
]  # fmt: skip
