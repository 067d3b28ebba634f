"""Every op by name for Sequences: lengths are taken from the inputs and propagated to the outputs.

    h = auto.lstm(words, *w1).h    # ops.lstm(words.values, words.lengths, *w1).h
    y = auto.fc(h, *w2)            # fc knows nothing of lengths
    z = auto.lstm(y, *w3).h        # z.lengths is words.lengths

A lengths input that divides the rows of another input is omitted: it comes with the Sequence. It may be given by
keyword, and must then be equal. Other lengths inputs stay, and take an array, a LoD, or a Sequence, which means its
LoD. An output is a Sequence if its rows are known to be divided by lengths, otherwise a plain array. Plain arrays are
accepted wherever the op accepts them.
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
