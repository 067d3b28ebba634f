"""Errors of an op: which op they come from, and what it takes."""

from collections.abc import Mapping

from seqflow.errors import LodError, OpError, OpIndexError, SeqflowError
from seqflow.kernels import KernelError
from seqflow.signature import Signature

_KINDS: Mapping[str, type[SeqflowError]] = {"index": OpIndexError, "negative": LodError, "sum": LodError}


def name_op(name: str, signature: Signature, error: SeqflowError) -> SeqflowError:
    """The error, which says from now on that it comes from this op."""
    return error.in_op(name, "" if isinstance(error, OpError) else signature.inputs_text)


def explain(name: str, signature: Signature, error: KernelError) -> SeqflowError:
    """What a kernel found wrong, as an error of the op."""
    kind = _KINDS.get(error.kind, LodError if error.argument == "lengths" else OpError)
    return kind(str(error)).in_op(name, signature.inputs_text)
