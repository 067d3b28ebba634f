"""Nothing that is shown holds characters that a terminal would obey."""

import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import SeqflowError
from seqflow.printable import printable, printable_line

ODD = ["\x1b[31m", "\x07", "\r", "\x7f", "\x9b31m", "\u202e", "\u2066", "\u2028", "\udcff", "\0"]


@given(st.text(st.characters(exclude_categories=())))
def test_text_of_any_characters_becomes_printable_in_utf_8(text):
    assert printable_line(text).isprintable()
    assert printable(text).replace("\n", "").replace("\t", "").isprintable()
    assert printable(text).count("\n") == text.count("\n")
    assert printable(printable(text)) == printable(text)
    printable(text).encode()


@pytest.mark.parametrize("text", ["", "a", "é – 日本 █", "a\nb"])
def test_text_that_is_printable_stays_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize("odd", ODD)
def test_messages_and_pictures_show_odd_characters_escaped(odd):
    name = f"a{odd}b"
    shown = printable_line(name)
    assert str(SeqflowError(f"there is no {name}\nthere is c")) == f"there is no {shown}\nthere is c"
    if odd != "\udcff":  # Arrow's names are UTF-8
        assert shown in repr(sf.open({name: np.arange(3)}))
        assert shown in repr(sf.from_arrow(pa.table({name: [1]})))


def test_the_name_of_a_file_is_shown_escaped(tmp_path):
    path = tmp_path / os.fsdecode(b"a\xff\x1b[31m.txt")
    path.write_text("x")
    assert "a\\udcff\\x1b[31m.txt" in repr(sf.open(path))
