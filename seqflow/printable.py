"""Escape control characters in text that is printed, so that a terminal does not obey them."""


def printable(text: str) -> str:
    r"""The text with each character that is not printable, line breaks and tabs excepted, as its escape sequence.

    These are those that `repr` escapes: control characters, overrides of the direction of writing, bytes of file
    names that are not UTF-8.

    >>> printable("a\x1b[31m\n\udcff")
    'a\\x1b[31m\n\\udcff'
    """
    return "\n".join("\t".join(map(printable_line, line.split("\t"))) for line in text.split("\n"))


def printable_line(text: str) -> str:
    r"""Escape line breaks and tabs, too.

    >>> printable_line("a\nb")
    'a\\nb'
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
