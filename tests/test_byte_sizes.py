"""Numbers of bytes as text, parsed and printed."""

import pytest

from seqflow.byte_sizes import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "size"), [("32 MiB", 2**25), ("1.5GB", 1_500_000_000), ("10", 10), (7, 7), ("2 kib", 2048)]
)
def test_sizes_as_people_write_them(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1 parsec", 0, -3, True, None, 1.5])
def test_anything_else_is_an_error(text):
    with pytest.raises(ValueError, match="expected bytes as a number or text such as '32 MiB'"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**40, "1.0 TiB"), (None, "?")]
)
def test_sizes_as_people_read_them(size, text):
    assert format_bytes(size) == text


@pytest.mark.parametrize("size", [1, 2**10, 5 * 2**20, 3 * 2**30, 2**43])
def test_what_is_printed_can_be_parsed(size):
    assert parse_bytes(format_bytes(size)) == size
