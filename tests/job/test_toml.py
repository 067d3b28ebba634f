"""Line numbers and values of TOML."""

import pytest

from seqflow.job.toml import line_of, parse_value

TEXT = '''a.b = 1           # 1
text = """
[fake]
fake = 1
"""
inline = { x = 1 }      # 6
other = "a # \\" = b"
[s . "t"]               # 8
k = [
  "k = 2",
]
# [comment]
[[list]]                # 13
'quoted' = 3
'''


@pytest.mark.parametrize(
    ("name", "line"),
    [("a.b", 1), ("a", 1), ("text", 2), ("inline.x", 6), ("other", 7), ("s", 8), ("s.t", 8), ("s.t.k", 9),
     ("list", 13), ("list.quoted", 14), ("fake", None), ("fake.x", None), ("comment", None)],
)  # fmt: skip
def test_the_line_of_a_setting_is_found(name: str, line: int | None) -> None:
    assert line_of(TEXT, name) == line


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("true", True), ("'x'", "x"), ("x", "x"), ("[1, 2]", [1, 2]), ("32 MiB", "32 MiB"), ("", ""),
     ("1\nb = 2", "1\nb = 2")],
)  # fmt: skip
def test_an_override_is_a_toml_value_or_else_text(text: str, value: object) -> None:
    assert parse_value(text) == value
