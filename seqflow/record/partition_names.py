"""Names of partition folders, `lang=python`, escaped as Hive does."""

import re
from typing import Any
from urllib.parse import unquote

NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
"""Characters that Hive escapes; all other text stays as it is."""
_FIRST = re.compile(r"^[_.]")
"""Beginnings of folder names that readers skip."""


def folder_name(column: str, value: Any) -> str:
    """Return the name of the folder for rows with this value of a column.

    >>> folder_name("lang", "c/c++"), folder_name("year", 2024), folder_name("done", True), folder_name("_k", None)
    ('lang=c%2Fc++', 'year=2024', 'done=true', '%5Fk=__HIVE_DEFAULT_PARTITION__')
    """
    text = NULL if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return f"{_FIRST.sub(_escape, _ESCAPED.sub(_escape, column))}={_ESCAPED.sub(_escape, text)}"


def folder_value(name: str) -> tuple[str, str | None] | None:
    """Return the column and its value as text; None for the name of another folder.

    >>> folder_value("lang=c%2Fc++"), folder_value("lang=__HIVE_DEFAULT_PARTITION__"), folder_value("lang")
    (('lang', 'c/c++'), ('lang', None), None)
    """
    column, equals, value = name.partition("=")
    if not column or not equals:
        return None
    return unquote(column), None if value == NULL else unquote(value)


def _escape(match: re.Match[str]) -> str:
    return f"%{ord(match[0]):02X}"
