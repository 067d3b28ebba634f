"""Escape control characters in text that is printed, so that a terminal does not obey them; messages without their
values.
"""

import re


def printable(text: str) -> str:
    r"""Return the text with all characters that cannot be printed as escape sequences, except line breaks and tabs.

    The same characters as in `repr` are escaped: control characters, overrides of the writing direction, bytes of
    file names that are not UTF-8.

    >>> printable("a\x1b[31m\n\udcff")
    'a\\x1b[31m\n\\udcff'
    """
    return "\n".join("\t".join(map(printable_line, line.split("\t"))) for line in text.split("\n"))


def printable_line(text: str) -> str:
    r"""Return the text with line breaks and tabs escaped as well.

    >>> printable_line("a\nb")
    'a\\nb'
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


_VALUES = re.compile(r"""(?<!\w)'[^']*'|"[^"]*"|(?<![\w-])[+-]?\d\w*(?:[.,]\d+)*""")
"""Quoted text and numbers; digits inside of names, such as `float32` and `UTF-8`, stay."""


def without_values(message: str) -> str:
    """Return a message with `…` in place of numbers and quoted text, so that messages about other values are equal.

    >>> without_values("found '2' at byte 17, can't be int64")
    "found … at byte …, can't be int64"
    """
    return _VALUES.sub("…", message)
