"""Parse lines of JSON and CSV into columns."""

from collections.abc import Sequence

from seqflow.kernels.arrays import Array
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import BYTES

__all__ = ["parse_csv", "parse_json"]


Column = tuple[Array | None, Array | None, Array | None, Array]
Parsed = tuple[tuple[Column, ...], Array, Array, Array]


@kernel(data=BYTES)
def parse_json(data: Array, names: Sequence[str], kinds: Sequence[str]) -> Parsed | None:
    """Parse lines with one object each: uint8 data[n] -> columns, int64 odd[K], int64 starts[K], int64 stops[K].

    Each line that is not blank is a row; the data end with a newline. A key that is missing or null has no value.
    A column of R rows is

    - its values: one for each row, or one for each item of all lists; of texts the bytes of all, as uint8; or None;
    - int32[R + 1], the items of the lists before each row and at the end; None if the column has no lists;
    - int32, the bytes of the texts before each text and at the end; None if the column has no texts;
    - bool[R], the rows without a value.

    A kind is the dtype of numbers, "bool", "text", "null" for keys that have no value in any row, or a kind in
    brackets for lists: "[int64]". Names have no quotes, backslashes and control letters.

    A line that is not plain has only missing values. Its row is one of `odd`, and its text, without blanks around
    it, is `data[start:stop]`. Every malformed line is such a line, and some others are: those with other, repeated or
    escaped keys, nulls in lists, or numbers of unusual form. Texts of plain lines are UTF-8.

    Returns None if most lines are not plain, and always without native kernels: such lines go to a parser that
    reports errors.
    """
    return None


@kernel(data=BYTES)
def parse_csv(data: Array, kinds: Sequence[str], delimiter: int, list_delimiter: int) -> Parsed | None:
    """Parse lines of values separated by a delimiter, one for each of `kinds`; the rest is as for `parse_json`.

    An empty value is missing, or an empty list; `""` is an empty text. Kind "skipped" accepts any value and stores
    none. The delimiters are letters of ASCII, and differ. Lines with a carriage return inside are not plain.
    """
    return None
