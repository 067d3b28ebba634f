"""Names of folders that say the value of a column, `lang=python`, as Hive writes them and Arrow reads them."""

from typing import Any
from urllib.parse import quote, unquote

NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_name(column: str, value: Any) -> str:
    """
    >>> folder_name("lang", "c/c++"), folder_name("year", 2024), folder_name("done", True), folder_name("lang", None)
    ('lang=c%2Fc%2B%2B', 'year=2024', 'done=true', 'lang=__HIVE_DEFAULT_PARTITION__')
    """
    text = NULL if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return f"{column}={quote(text, safe='')}"


def folder_value(name: str) -> tuple[str, str | None] | None:
    """The column and its value as text; None for the name of another folder.

    >>> folder_value("lang=c%2Fc%2B%2B"), folder_value("lang=__HIVE_DEFAULT_PARTITION__"), folder_value("lang")
    (('lang', 'c/c++'), ('lang', None), None)
    """
    column, equals, value = name.partition("=")
    if not column or not equals:
        return None
    return unquote(column), None if value == NULL else unquote(value)
