"""Conditions that rows have to fulfil: those that do not are bad rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from seqflow import executor
from seqflow.errors import OpError, OpTypeError, SeqflowError
from seqflow.kernels.arrays import Array
from seqflow.net import Net
from seqflow.record import BadRow, Record

_NAME = re.compile(r"[^\W\d][\w.]*")


class Required:
    """Conditions on prepared rows, as texts and the nets that compute them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        self._nets = [
            None if _NAME.fullmatch(text) else Net(f"required = {text}\nreturn required") for text in texts
        ]
        """What computes each; None for a column of truth values."""

    def check(self, record: Record) -> None:
        """OpError for a condition that is not one truth value a row of records like this one."""
        for text, net in zip(self.texts, self._nets, strict=True):
            self._fulfilled(text, net, record)

    def bad_rows(self, record: Record) -> list[BadRow]:
        """The rows for which a condition is false: the first that is."""
        left = np.ones(record.num_rows, np.bool_)
        found = []
        for text, net in zip(self.texts, self._nets, strict=True):
            fulfilled = self._fulfilled(text, net, record)
            inputs = [text] if net is None else net.inputs
            column = ", ".join(dict.fromkeys(name.removesuffix(".lengths") for name in inputs))
            found += [
                BadRow(row, column, f"require: {text} is false")
                for row in np.flatnonzero(left & ~fulfilled).tolist()
            ]
            left &= fulfilled
        return sorted(found)

    def _fulfilled(self, text: str, net: Net | None, record: Record) -> Array:
        """bool[num_rows]: for which rows a condition is true."""
        try:
            found = record[text] if net is None else executor.run(net, record)["required"]
        except SeqflowError as error:
            error.add_note(f"in require = {text!r}")
            raise
        if found.dtype != np.bool_ or found.shape != (record.num_rows,):
            raise OpError(
                f"require: {text} is {found.dtype}{list(found.shape)}, expected one truth value for each of "
                f"{record.num_rows} rows\n  lengths_any and lengths_all make one of those of elements"
            )
        return found


def texts_of_required(require: str | Sequence[str] | None) -> tuple[str, ...]:
    """The texts of conditions, each of which is one; OpTypeError for what is no text, NetError for what is no net."""
    if require is None:
        return ()
    texts = [require] if isinstance(require, str) else require
    if not isinstance(texts, Sequence) or not texts or not all(isinstance(text, str) for text in texts):
        raise OpTypeError(
            f"Loader: require is {require!r}, expected a condition, such as "
            "'lengths_any(labels.values != -100, labels.lengths)', or a list of conditions"
        )
    return Required(texts).texts


def required_of(texts: Sequence[str]) -> Required | None:
    """The conditions of some texts, where there are any."""
    return Required(texts) if texts else None
