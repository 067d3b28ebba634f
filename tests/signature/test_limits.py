"""Upper bounds that a signature declares: of sizes, elements and sums."""

from seqflow import TensorSpec, registry
from seqflow.shape import Dimension, Equalities


def limits_of(op, attributes, **specs):
    """What is known of the sum and the largest of the op's output lengths."""
    known = Equalities()
    registry.get(op).infer(specs, attributes, results=["y", "k"], equalities=known)
    return [known.resolve(of("k")).max_length for of in (Dimension.sum_of, Dimension.max_of)]


def test_so_many_lengths_of_so_much_each_bound_their_sum():
    data, lengths = TensorSpec("int32", "{sum(n)}"), TensorSpec("int64", "{rows:0..64}")
    assert limits_of("truncate", {"max_length": 10}, data=data, lengths=lengths) == [640, 10]


def test_nothing_bounds_the_sum_of_lengths_that_nobody_has_counted():
    data, lengths = TensorSpec("int32", "{sum(n)}"), TensorSpec("int64", "{rows}")
    assert limits_of("truncate", {"max_length": 10}, data=data, lengths=lengths) == [None, 10]
