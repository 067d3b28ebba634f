"""Sizes in bytes, as people write them."""

import pytest

from seqflow.loader.sizes import parse_bytes


@pytest.mark.parametrize(
    ("text", "size"), [("32 MiB", 2**25), ("1.5GB", 1_500_000_000), ("10", 10), (7, 7), ("2 kib", 2048)]
)
def test_sizes_as_people_write_them(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1 parsec", 0, -3, True, None, 1.5])
def test_anything_else_is_an_error(text):
    with pytest.raises(ValueError, match="expected bytes as a number or text such as '32 MiB'"):
        parse_bytes(text)
