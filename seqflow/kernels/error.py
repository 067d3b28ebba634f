"""KernelError, raised by all kernels: the value found, its position, and the expected range."""

from typing import Any


class KernelError(ValueError):
    """Error for lengths, indices or an output array that a kernel cannot use.

    kind: "negative" (a length below 0), "sum" (lengths that do not add up to the number of rows), "index" (an index
    outside the rows it points into), "order" (ids that decrease), "overflow" (a sum or a value above int64), "bounds"
    (a length above the available room, a slice outside its array), "out" (an `out` array of the wrong form), "memory"
    (a result larger than the memory), "changed" (another thread wrote to it during the call) or "damaged" (bytes that
    violate their format). argument: the name of the argument. position: the flat position in it; None if no single
    entry is wrong. value: the value found. low, high: `low <= value < high` would be valid; None without a bound.
    """

    def __init__(
        self,
        message: str,
        kind: str,
        argument: str,
        position: int | None = None,
        value: int | None = None,
        low: int | None = None,
        high: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.argument = argument
        self.position = position
        self.value = value
        self.low = low
        self.high = high

    def __reduce__(self) -> tuple[Any, ...]:
        found = (self.kind, self.argument, self.position, self.value, self.low, self.high)
        return type(self), (str(self), *found), self.__dict__


class KernelMemoryError(KernelError, MemoryError):
    """Error for a result larger than the memory."""


MAX_INT64 = 2**63 - 1


def negative(argument: str, position: int, value: int) -> KernelError:
    """Make the error for an entry below 0."""
    message = f"{argument}[{position}] = {value} is negative"
    return KernelError(message, "negative", argument, position, value, 0)


def overflow(argument: str, position: int, value: int, low: int, high: int) -> KernelError:
    """Make the error for the entry at which the running sum overflows int64; `high` is above the largest entry that
    fits.
    """
    message = f"sum({argument}) overflows int64 at {argument}[{position}] = {value}"
    return KernelError(message, "overflow", argument, position, value, low, high)


def too_large(argument: str, position: int, value: int) -> KernelError:
    """Make the error for an unsigned entry above the largest int64."""
    message = f"{argument}[{position}] = {value} does not fit int64"
    return KernelError(message, "overflow", argument, position, value, 0, MAX_INT64 + 1)


def outside(argument: str, position: int, value: int, low: int, high: int) -> KernelError:
    """Make the error for an index outside its rows."""
    message = f"{argument}[{position}] = {value} is outside [{low}, {high})"
    return KernelError(message, "index", argument, position, value, low, high)


def descending(argument: str, position: int, value: int, before: int) -> KernelError:
    """Make the error for an entry below the one before it."""
    message = f"{argument}[{position}] = {value} is below {argument}[{position - 1}] = {before}, expected no decrease"
    return KernelError(message, "order", argument, position, value, before)


def not_in_preorder(argument: str, position: int, value: int) -> KernelError:
    """Make the error for a parent that is not on the path to the segment before it."""
    message = f"{argument}[{position}] = {value} is neither -1 nor on the path to the segment before it"
    return KernelError(message, "order", argument, position, value, -1, position)


def too_long(argument: str, position: int, value: int, room: int) -> KernelError:
    """Make the error for a length above the available room."""
    message = f"{argument}[{position}] = {value} is longer than {room}"
    return KernelError(message, "bounds", argument, position, value, 0, room + 1)


def slice_outside(argument: str, position: int, value: int, size: int, rows: int) -> KernelError:
    """Make the error for a slice that starts at `value` and leaves its array of `rows` rows."""
    message = f"{argument}[{position}] = {value} starts a slice of {size} rows outside [0, {rows})"
    return KernelError(message, "bounds", argument, position, value, 0, rows - size + 1)


def slice_across(argument: str, position: int, value: int, size: int, low: int, high: int) -> KernelError:
    """Make the error for a slice that starts in the array of rows `low` … `high` - 1 and leaves it."""
    message = f"{argument}[{position}] = {value} starts a slice of {size} rows that leaves its array, [{low}, {high})"
    return KernelError(message, "bounds", argument, position, value, low, high - size + 1)


def does_not_fit(argument: str, position: int, value: int, low: int, high: int, dtype: Any) -> KernelError:
    """Make the error for an element that the requested dtype cannot hold; `position` counts the elements of the
    slices.
    """
    message = f"{argument}[{position}] = {value} does not fit {dtype}"
    return KernelError(message, "overflow", argument, position, value, low, high)


def wrong_sum(argument: str, total: int, expected: int, owner: str) -> KernelError:
    """Make the error for entries that do not add up to the number of rows of `owner`."""
    message = f"sum({argument}) is {total} but {owner} has {expected} rows"
    return KernelError(message, "sum", argument, None, total, expected, expected + 1)


def wrong_out(argument: str, found: str, expected: str) -> KernelError:
    """Make the error for an output array that cannot hold the result."""
    return KernelError(f"{argument} is {found}, expected {expected}", "out", argument)


def too_full(row: int, total: int, capacity: int) -> KernelError:
    """Make the error for a row whose pieces have more elements than its capacity."""
    message = f"the pieces of row {row} have {total} elements, more than the capacity {capacity}"
    return KernelError(message, "bounds", "pieces", row, total, 0, capacity + 1)


def changed(argument: str) -> KernelError:
    """Make the error for integers that another thread changed while they were read."""
    return KernelError(f"{argument} changed while they were read", "changed", argument)


def damaged(argument: str, reason: str) -> KernelError:
    """Make the error for bytes that violate their format."""
    return KernelError(f"{argument} is damaged: {reason}", "damaged", argument)


def beyond_memory(needed: int | None = None, free: int | None = None) -> KernelMemoryError:
    """Make the error for a result of more bytes than are free, or than int64 can count."""
    count = "more bytes than int64 counts" if needed is None else f"{needed:,} bytes"
    have = "" if free is None else f" of memory, there are {free:,} bytes"
    return KernelMemoryError(f"the result needs {count}{have}", "memory", "out")
