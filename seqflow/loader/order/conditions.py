"""Conditions on prepared rows: `keep` leaves rows out on purpose, and rows that `require` refuses are bad rows."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from seqflow import executor
from seqflow.errors import OpError, OpTypeError, SeqflowError
from seqflow.kernels.arrays import Array
from seqflow.net import Net
from seqflow.record import BadRow, Record

_NAME = re.compile(r"[^\W\d][\w.]*")


@dataclass(frozen=True, slots=True, eq=False)
class RowCondition:
    """A condition on prepared rows, of the option `keep` or `require`."""

    option: str
    text: str
    net: Net
    """The net that computes it, as its only output, with the constants that it reads."""

    def fulfilled(self, record: Record) -> Array:
        """Return for which rows the condition is true: bool[num_rows].

        Raise OpError when it does not give one truth value for each row.
        """
        try:
            (found,) = executor.run(self.net, record).values()
        except SeqflowError as error:
            error.add_note(f"in {self.option} = {self.text!r}")
            raise
        if found.dtype != np.bool_ or found.shape != (record.num_rows,):
            raise OpError(
                f"{self.option}: {self.text} is {found.dtype}{list(found.shape)}, expected one truth value for each "
                f"of {record.num_rows} rows\n  lengths_any and lengths_all make one of those of elements, hash_text "
                "one hash of the bytes of a text"
            )
        return found


@lru_cache(maxsize=64)
def _condition(option: str, text: str) -> RowCondition:
    result = f"{option}.fulfilled"  # a name that no column has
    net = f"return {text}" if _NAME.fullmatch(text) else f"{result} = {text}\nreturn {result}"
    return RowCondition(option, text, Net(net))


def conditions_of(option: str, given: str | Sequence[str] | None) -> tuple[RowCondition, ...]:
    """Return the conditions of an option; raise OpTypeError when one is not a text, NetError when it is not a
    condition.
    """
    if given is None:
        return ()
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, Sequence) or not texts or not all(isinstance(text, str) for text in texts):
        raise OpTypeError.of(
            f"Loader.{option}",
            f"is {given!r}, expected a condition, such as "
            "'lengths_any(labels.values != -100, labels.lengths)', or a list of conditions",
        )
    return tuple(_condition(option, text) for text in texts)


def fulfilling(conditions: Sequence[RowCondition], record: Record) -> tuple[Array, Counter[str]]:
    """Return the rows for which all conditions are true, by number, and by text of a condition the number of rows
    for which it is the first that is false; raise OpError as a condition does.
    """
    left = np.ones(record.num_rows, np.bool_)
    refused = Counter[str]()
    for one in conditions:
        fulfilled = one.fulfilled(record)
        refused[one.text] += int(np.count_nonzero(left & ~fulfilled))
        left &= fulfilled
    return np.flatnonzero(left), +refused


def unfulfilled(conditions: Sequence[RowCondition], record: Record) -> list[BadRow]:
    """Return the rows for which some condition is false, each with the first such condition; raise OpError as a
    condition does.
    """
    left = np.ones(record.num_rows, np.bool_)
    found = []
    for one in conditions:
        fulfilled = one.fulfilled(record)
        column = ", ".join(dict.fromkeys(name.removesuffix(".lengths") for name in one.net.inputs))
        found += [
            BadRow(row, column, f"{one.option}: {one.text} is false")
            for row in np.flatnonzero(left & ~fulfilled).tolist()
        ]
        left &= fulfilled
    return sorted(found)
