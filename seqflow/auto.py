"""Every op by name for Sequences: lengths are taken from the inputs and propagated to the outputs.

    h = auto.lstm(words, *w1).h    # ops.lstm(words.values, words.lengths, *w1).h
    y = auto.fc(h, *w2)            # fc knows nothing of lengths
    z = auto.lstm(y, *w3).h        # z.lengths is words.lengths

A lengths input that says how the rows of another input are divided is left out: it comes with the Sequence. By
keyword it may be given, and must then be the same. Other lengths stay where they are, and take an array, a LoD, or
a Sequence, which stands for its LoD. An output is a Sequence where its rows are known to be divided by lengths,
else a plain array. Plain arrays are taken wherever the op takes them.
"""

from typing import Any as _Any

from seqflow import registry as _registry
from seqflow.sequence import lifted as _lifted


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'seqflow.auto' has no attribute {name!r}")
    try:
        call = _lifted(name)
    except KeyError as error:
        raise AttributeError(str(error)) from None
    globals()[name] = call
    return call


def __dir__() -> list[str]:
    return _registry.names()
