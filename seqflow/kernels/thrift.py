"""A reader of Thrift's compact protocol, the encoding of Parquet footers."""

from typing import Any

_VARINT_BITS = 70


def read_struct(content: bytes) -> dict[int, Any]:
    """The struct at the start of the content: values by field number, structs in it likewise, lists as lists.

    ValueError for content that is cut off or malformed.
    """
    try:
        return _Reader(content).struct()
    except (IndexError, RecursionError) as error:
        raise ValueError(f"a Thrift struct is cut off or nested too deep: {error}") from error


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        content = self._content
        number = 0
        while head := content[self._at]:
            self._at += 1
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == 1 if kind <= 2 else self._value(kind)
        self._at += 1
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind in (9, 10):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._unsigned()
            return [self._value(head & 15) for _ in range(size)]
        if kind == 12:
            return self.struct()
        if kind == 7:
            return self._bytes(8)
        if kind in (1, 2, 3):
            return self._byte()
        raise ValueError(f"a Thrift struct has a field of type {kind}")

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        self._at += size
        return self._content[self._at - size : self._at]

    def _unsigned(self) -> int:
        at = self._at
        part = self._content[at]
        if part < 128:
            self._at = at + 1
            return part
        number = shift = 0
        while part >= 128:
            if shift > _VARINT_BITS:
                raise ValueError("a Thrift struct has a number of more than 64 bits")
            number |= (part & 127) << shift
            shift += 7
            at += 1
            part = self._content[at]
        self._at = at + 1
        return number | part << shift

    def _integer(self) -> int:
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)
