"""Tensors: TensorSpec, views without copies, TensorSlice, and Arrow tensor messages.

A tensor is a `numpy.ndarray`; nothing here wraps it.
"""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from seqflow.arguments import checked, shown
from seqflow.errors import OpError, OpTypeError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.shape import PartialShape, ShapeLike

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, init=False)
class TensorSpec:
    """The dtype, shape and row provenance of a tensor, known before there is data.

    Two tensors may have equally many rows but different row spaces.

    Args:
        dtype: NumPy dtype or its name.
        shape: Shape: text such as "{B:0..64,8}", or a list of sizes.
        rows: Row space of axis 0; None is a plain size.
        axes: Row space of each axis, in place of `rows`; None is a plain size, also for all axes after the
            last entry.
        points: Target of integers: rows, for indices, or positions inside sequences; None if undeclared.

    >>> spec = TensorSpec("float32", "{B:0..64,8}")
    >>> print(spec, spec.byte_bound)
    float32{B:0..64,8} 2048
    """

    dtype: np.dtype[Any]
    shape: PartialShape
    axes: tuple[Any, ...]
    points: Any

    def __init__(
        self,
        dtype: Any,
        shape: ShapeLike,
        rows: Hashable | None = None,
        axes: Sequence[Hashable | None] = (),
        points: Hashable | None = None,
    ) -> None:
        try:
            _set_dtype(self, np.dtype(dtype))
            _set_axes(self, tuple(axes) if axes else () if rows is None else (rows,))
        except (TypeError, ValueError):
            found = f"dtype is {shown(dtype)}, axes is {shown(axes)}"
            raise OpTypeError(f"TensorSpec: {found}, expected a dtype and a list") from None
        _set_shape(self, shape if type(shape) is PartialShape else PartialShape.of(shape))
        _set_points(self, points)

    @property
    def rows(self) -> Any:
        """Row space of axis 0; None for a plain size."""
        return self.axes[0] if self.axes else None

    @staticmethod
    @checked(late=True)
    def of(array: Array, rows: Hashable | None = None) -> "TensorSpec":
        """Return the spec of an array."""
        return TensorSpec(array.dtype, array.shape, rows)

    @property
    def byte_bound(self) -> int | None:
        """Largest possible number of bytes; None without a bound, as for text of unknown width."""
        most = self.shape.num_elements.max_length
        return None if most is None or self.dtype.itemsize == 0 else most * self.dtype.itemsize

    def __str__(self) -> str:
        dtype = "str" if self.dtype == np.dtype("U") else self.dtype  # text of unknown width
        return f"{dtype}{self.shape}"


_set_dtype, _set_shape, _set_axes, _set_points = (
    TensorSpec.__dict__[name].__set__ for name in ("dtype", "shape", "axes", "points")
)  # inference makes many specs: half the cost of object.__setattr__


class Description(NamedTuple):
    """Memory layout of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    bytes: int
    """Bytes of its elements, each counted once."""
    owner: object
    """Object that owns the memory: an array, a buffer, a memory map."""


def describe(array: Array) -> Description:
    """Return the dtype, shape, strides (in bytes), bytes and owner of an array.

    >>> values = np.arange(12, dtype=np.int32)
    >>> describe(values.reshape(3, 4)).strides, describe(values.reshape(3, 4)).owner is values
    ((16, 4), True)
    """
    return Description(array.dtype, array.shape, array.strides, array.nbytes, _owner(array))


def view(array: Array, shape: Sequence[int] | PartialShape) -> Array:
    """Return the elements of `array` in another shape, sharing its memory; one size may be -1.

    Raises ShapeError when the sizes do not fit, or when the elements would have to be copied.

    >>> view(np.arange(12), (3, -1)).shape
    (3, 4)
    """
    sizes = shape.to_shape() if isinstance(shape, PartialShape) else tuple(shape)
    if any(size < -1 for size in sizes):
        raise ShapeError(f"view: {array.size} elements of shape {array.shape} cannot be viewed as {sizes}")
    try:
        return np.reshape(array, sizes, copy=False)
    except ValueError:
        raise ShapeError(_no_view(array, sizes)) from None


def _no_view(array: Array, sizes: tuple[int, ...]) -> str:
    message = f"view: {array.size} elements of shape {array.shape} cannot be viewed as {sizes}"
    try:
        np.broadcast_to(np.int8(0), array.shape).reshape(sizes)
    except ValueError as error:
        return f"{message}: {error}"
    return (
        f"{message} without a copy, its strides are {array.strides}\n  copy it first: numpy.ascontiguousarray"
    )


def buffer(array: Array) -> Array:
    """Return the memory of an array as read-only bytes, without its dtype and shape; the bytes keep the memory alive.

    For an array with gaps, these are all bytes from its first to its last element. Raises OpTypeError for an array of
    Python objects.

    >>> buffer(np.array([1, 2], np.int16)).nbytes
    4
    """
    if array.dtype.hasobject:
        raise OpTypeError("buffer: the array holds Python objects, expected plain numbers")
    low, high = np.lib.array_utils.byte_bounds(array)
    span = high - low if array.size else 0
    return np.asarray(_Memory(low if span else array.ctypes.data, span, _owner(array)))


class _Memory:
    """Bytes at an address, which keep their owner alive."""

    def __init__(self, address: int, size: int, owner: object) -> None:
        self.owner = owner  # NumPy keeps this object as the base of the array, which keeps the owner alive
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (size,), "data": (address, True),
        }  # fmt: skip


def _owner(array: Array) -> object:
    """Return the innermost base of an array that is not itself a view."""
    owner: object = array
    while True:
        base = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
        base = getattr(base, "owner", base) if isinstance(base, _Memory) else base
        if base is None:
            return owner
        owner = base


@checked()
@dataclass(frozen=True, slots=True)
class TensorSlice:
    """A contiguous part of a tensor: its start and its length along each axis.

    A length of None is the whole axis. The text form has one part an axis, `-` for a whole axis:

    Args:
        starts: First element along each axis.
        lengths: Number of elements along each axis; None is the whole axis.

    >>> part = TensorSlice.parse("-:0,10")
    >>> part.starts, part.lengths
    ((0, 0), (None, 10))
    >>> part.apply(np.zeros((3, 20))).shape
    (3, 10)
    >>> print(part.intersect(TensorSlice.parse("1,2:8,4")))
    1,2:8,2
    """

    starts: tuple[int, ...] = ()
    lengths: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", tuple(self.starts))
        object.__setattr__(self, "lengths", tuple(self.lengths))
        if len(self.starts) != len(self.lengths):
            raise ShapeError(f"slice: there are {len(self.starts)} starts but {len(self.lengths)} lengths")
        for axis, (start, length) in enumerate(zip(self.starts, self.lengths, strict=True)):
            if not _is_place(start) or not (length is None or _is_place(length)):
                raise ShapeError(
                    f"slice: axis {axis} is {shown(start)},{shown(length)}, expected a start and length from 0 to "
                    "2**63 - 1"
                )
            if length is None and start != 0:
                raise ShapeError(f"slice: axis {axis} starts at {start} but has no length")

    @staticmethod
    def full(rank: int) -> "TensorSlice":
        """Return the slice of all elements of every tensor of this rank."""
        return TensorSlice((0,) * rank, (None,) * rank)

    @staticmethod
    def from_pairs(pairs: Iterable[tuple[int, int | None]]) -> "TensorSlice":
        """Return the slice with a start and a length for each axis."""
        starts, lengths = [], []
        for start, length in pairs:
            starts.append(start)
            lengths.append(length)
        return TensorSlice(tuple(starts), tuple(lengths))

    @staticmethod
    def from_message(message: Mapping[str, Any]) -> "TensorSlice":
        """Read `{"extent": [{"start": 0, "length": 10}, {}]}`; an extent without a length is the whole axis."""
        try:
            pairs = [(extent.get("start", 0), extent.get("length")) for extent in message["extent"]]
        except (KeyError, TypeError, AttributeError):
            raise ShapeError(
                f"slice: {message!r} is not a message of a slice, expected a list `extent`"
            ) from None
        return TensorSlice.from_pairs(pairs)

    @staticmethod
    def parse(text: str) -> "TensorSlice":
        """Read `-:0,10`; the inverse of `str`. Raise ShapeError with a column for malformed text."""
        pairs: list[tuple[int, int | None]] = []
        column = 1
        for part in text.split(":") if text else []:
            match = re.fullmatch(r"(\d{1,19}),(\d{1,19})", part, re.ASCII)
            if part != "-" and not match:
                _no_slice(text, part, column)
            pairs.append((int(match[1]), int(match[2])) if match else (0, None))
            column += len(part) + 1
        return TensorSlice.from_pairs(pairs)

    @property
    def rank(self) -> int:
        return len(self.starts)

    @property
    def is_full(self) -> bool:
        """Whether every axis is whole."""
        return all(length is None for length in self.lengths)

    def to_message(self) -> dict[str, list[dict[str, int]]]:
        """Return the message that `from_message` reads."""
        pairs = zip(self.starts, self.lengths, strict=True)
        return {
            "extent": [
                {} if length is None else {"start": start, "length": length} for start, length in pairs
            ]
        }

    def apply(self, array: Array) -> Array:
        """Return the part of an array, sharing its memory; raise ShapeError when the array has no such part."""
        self._check(PartialShape(array.shape))
        parts = [
            slice(None) if length is None else slice(start, start + length)
            for start, length in zip(self.starts, self.lengths, strict=True)
        ]
        return array[(*parts, ...)]

    def apply_to_shape(self, shape: ShapeLike) -> PartialShape:
        """Return the shape of the part; raise ShapeError when a tensor of this shape has no such part.

        >>> print(TensorSlice.parse("-:0,10").apply_to_shape("{B,20}"))
        {B,10}
        """
        shape = PartialShape.of(shape).merge_rank(self.rank)
        self._check(shape)
        return PartialShape(
            size if length is None else length for size, length in zip(shape, self.lengths, strict=True)
        )

    def intersect(self, other: "TensorSlice") -> "TensorSlice | None":
        """Return the part in both slices; None if there is none. Raise ShapeError for different ranks.

        An empty slice and a whole axis give the empty slice.
        """
        if self.rank != other.rank:
            raise ShapeError(f"slice: {self} has rank {self.rank} but {other} has rank {other.rank}")
        pairs: list[tuple[int, int | None]] = []
        for start, length, other_start, other_length in zip(
            self.starts, self.lengths, other.starts, other.lengths, strict=True
        ):
            if length is None or other_length is None:
                pairs.append((max(start, other_start), other_length if length is None else length))
                continue
            first = max(start, other_start)
            end = min(start + length, other_start + other_length)
            if end <= first:
                return None
            pairs.append((first, end - first))
        return TensorSlice.from_pairs(pairs)

    def overlaps(self, other: "TensorSlice") -> bool:
        """Return whether some element is in both slices; no element is in an empty slice."""
        both = self.intersect(other)
        return both is not None and 0 not in both.lengths

    def _check(self, shape: PartialShape) -> None:
        if len(shape) != self.rank:
            raise ShapeError(f"slice: {self} has rank {self.rank} but the tensor has shape {shape}")
        for axis, (start, length, size) in enumerate(zip(self.starts, self.lengths, shape, strict=True)):
            if length is not None and size.max_length is not None and start + length > size.max_length:
                raise ShapeError(f"slice: {start},{length} ends after axis {axis}, which has {size} elements")

    def __str__(self) -> str:
        pairs = zip(self.starts, self.lengths, strict=True)
        return ":".join("-" if length is None else f"{start},{length}" for start, length in pairs)


def _is_place(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(0 <= value < 2**63)


def _no_slice(text: str, part: str, column: int) -> NoReturn:
    raise ShapeError(
        f"slice: found {part!r} at column {column}, expected '-' or 'start,length'\n"
        f"  {text}\n  {' ' * (column - 1)}^"
    )


def to_message(array: Array) -> "pa.Buffer":
    """Return an array as an Arrow tensor message.

    Arrow's tensors hold integers and floats in native byte order; other byte orders are converted. Bools and times
    are sent as uint8 with one more axis, the bytes of each element, whose name is their dtype: other readers of Arrow
    see these bytes. Raises OpTypeError for other dtypes.

    >>> from_message(to_message(np.array([[1, 2], [3, 4]])))
    array([[1, 2],
           [3, 4]])
    """
    import pyarrow as pa

    if array.dtype.kind not in "iufbmM" or array.dtype.itemsize > 8:
        raise OpTypeError(
            f"to_message: the array is {array.dtype}, expected integers, floats, bools or times\n"
            "  send another dtype as its bytes: array.view(numpy.uint8)"
        )
    native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    axis_names = None
    if native.dtype.kind in "bmM":
        axis_names = [""] * native.ndim + [native.dtype.str]
        native = native.reshape(-1).view(np.uint8).reshape(*native.shape, native.dtype.itemsize)
        if not native.size:  # Arrow omits the names unless the strides of an empty array are these
            native = np.lib.stride_tricks.as_strided(native, strides=(1,) * native.ndim)
    sink = pa.BufferOutputStream()
    pa.ipc.write_tensor(pa.Tensor.from_numpy(native, dim_names=axis_names), sink)
    return sink.getvalue()


def from_message(message: Any) -> Array:
    """Return the array in an Arrow tensor message: read-only, sharing the message's memory and keeping it alive.

    `message` is a pyarrow.Buffer, bytes, or any object with a buffer, such as a memory map. Raises OpError when it is
    damaged.
    """
    import pyarrow as pa

    try:
        source = message if isinstance(message, pa.Buffer) else pa.py_buffer(message)
    except TypeError:
        raise OpTypeError(
            f"from_message: the message is {type(message).__name__}, expected a buffer"
        ) from None
    try:
        tensor = pa.ipc.read_tensor(pa.BufferReader(source))
        array = _named_dtype(tensor.to_numpy(), tensor.dim_names)
    except (pa.ArrowException, OSError, ValueError) as error:  # raised by NumPy for sizes beyond all memory
        raise OpError(f"from_message: {len(source)} bytes are not an Arrow tensor message: {error}") from None
    array.flags.writeable = False
    return array


def _named_dtype(array: Array, axis_names: Sequence[str]) -> Array:
    """Return the bytes of bools or times in the dtype that names their last axis; other arrays unchanged."""
    if not axis_names or not re.fullmatch(r"\|b1|[<>][mM]8(\[\w+\])?", axis_names[-1]):
        return array
    try:
        dtype = np.dtype(axis_names[-1])
    except TypeError as error:
        raise ValueError(str(error)) from None
    if array.dtype != np.uint8 or array.shape[-1] != dtype.itemsize:
        raise ValueError(
            f"its last axis is {array.dtype} of {array.shape[-1]}, expected the bytes of {dtype}"
        )
    if dtype == np.bool_ and array.size and array.max() > 1:
        raise ValueError(f"a bool is {array.max()}, expected 0 or 1")
    return np.ascontiguousarray(array).view(dtype)[..., 0]
