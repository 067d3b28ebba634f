"""Token ids as text: by the tokenizers of a job's nets."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from seqflow import ops
from seqflow.errors import SeqflowError
from seqflow.kernels.arrays import Array
from seqflow.net import Net
from seqflow.net.step import Step
from seqflow.net.syntax import Reference

Tokenizers = Mapping[str, Any]
"""The tokenizer of each column of token ids."""


def tokenizers_of(nets: Iterable[object]) -> Tokenizers:
    """Return the columns of token ids, and their tokenizers, in the results of nets that run one after another.

    The first output of an op holds ids if the op has a tokenizer, or if its first input holds ids.
    """
    found: dict[str, Any] = {}
    for net in nets:
        if isinstance(net, Net):
            for step in net.steps:
                tokenizer = _tokenizer(step, net, found)
                if tokenizer is not None and step.results:
                    found[_column(step.results[0])] = tokenizer
    return found


def as_text(ids: Array, tokenizer: Any) -> str | None:
    """Return ids as text; None if they are not ids of the tokenizer, for example labels."""
    if ids.dtype.kind not in "iu" or ids.dtype == np.uint8 or ids.ndim != 1:
        return None
    try:
        found = ops.decode(ids, np.array([len(ids)]), tokenizer=tokenizer, special_tokens=True)
    except SeqflowError:
        return None
    return found.values.tobytes().decode("utf-8", "replace")


def _tokenizer(step: Step, net: Net, found: Mapping[str, Any]) -> Any:
    given = step.attributes.get("tokenizer")
    if isinstance(given, Reference):
        return net.constants.get(given.name)
    if given is not None:
        return net.located(given) if isinstance(given, str) else given
    operand = next(iter(step.inputs.values()), None)
    return found.get(_column(operand.name)) if isinstance(operand, Reference) else None


def _column(name: str) -> str:
    return name.removesuffix(".values")
