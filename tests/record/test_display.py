"""A record as a table, in text and in HTML."""

from html.parser import HTMLParser

import numpy as np
import pyarrow as pa

import seqflow as sf

TABLE = pa.table(
    {"id": [7, 8], "ids": [[1, 2], [3]], "x": pa.array([[1.5, 2], [3, 4]], pa.list_(pa.float32(), 2))}
)


def test_a_record_is_a_table_of_names_dtypes_shapes_and_first_values():
    assert repr(sf.from_arrow(TABLE)) == (
        "Record of 2 rows\n"
        "  id            int64    [2]     7, 8\n"
        "  ids.lengths   int64    [2]     2, 1\n"
        "    ids.values  int64    [3]     1, 2, 3\n"
        "  x             float32  [2, 2]"
    )


def test_values_beyond_the_first_are_a_mark():
    assert repr(sf.from_arrow(pa.table({"n": range(9)}))).endswith("[9]  0, 1, 2, 3, …")
    assert repr(sf.from_arrow(pa.table({"n": pa.array([], pa.int8())}))) == "Record of 0 rows\n  n  int8  [0]"


def test_of_many_tensors_the_first_and_the_last_are_shown():
    text = repr(sf.from_arrow(pa.table({f"c{n}": [1] for n in range(300)})))
    assert len(text.splitlines()) == 41
    assert "  … 261 more tensors" in text
    assert "c299" in text


def test_names_cannot_control_a_terminal():
    assert "\x1b" not in repr(sf.from_arrow(pa.table({"a\x1b[2J": [1]})))


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.texts = []

    def handle_data(self, data):
        self.texts.append(data)


def test_the_html_has_the_same_cells_and_escapes_names():
    parser = Cells()
    page = sf.from_arrow(TABLE.rename_columns(["<b>", "ids", "x"]))._repr_html_()
    parser.feed(page)
    assert "<b>" not in page.replace("&lt;b&gt;", "")
    assert parser.texts[:9] == [
        "Record of 2 rows",
        "tensor",
        "dtype",
        "shape",
        "first values",
        "<b>",
        "int64",
        "[2]",
        "7, 8",
    ]
    assert "… 261 more tensors" in sf.from_arrow(pa.table({f"c{n}": [1] for n in range(300)}))._repr_html_()


def test_a_batch_of_tensors_of_any_dtype_is_shown():
    moments = pa.array([1], pa.timestamp("s", "UTC"))
    text = repr(sf.from_arrow(pa.table({"at": moments, "b": [True], "h": pa.array(np.ones(1, np.float16))})))
    assert "datetime64[s]  [1]  1970-01-01T00:00:01" in text
