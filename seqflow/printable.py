"""Escape control characters in text that is printed, so that a terminal does not obey them."""


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
