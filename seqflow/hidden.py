"""Hide credentials in text that is shown or kept: reprs, messages, logs."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

C = TypeVar("C", bound=type)

_QUERY, _USER = re.compile(r"(?<=[?&#])([^=&\s/]+)=[^&\s'\"]*"), re.compile(r"(?<=://)[^/\s]*:[^/\s]*@")
_TOKEN = re.compile(r"(?<=^http://)[^/@\s]+(?=@)|(?<=^https://)[^/@\s]+(?=@)|(?<=\?)[^=&\s]+$", re.IGNORECASE)
"""Names without a password, and queries without names: on the web, either may be a token."""
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/[^\s'\"<>]+")
_ENTRY = re.compile(r"""(['"])([\w.-]+)\1: ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
"""An entry of a dict as `repr` writes it."""
_SECRET = re.compile(
    # `tokens`, `max_tokens` and `tokenizer` are not secrets
    "secret|token(?!s|iz)|password|passwd|sas|account_key|access_key|private_key|api_key|credential|authorization"
)


def is_secret(name: str) -> bool:
    """Return whether the value of an option must not be shown or stored.

    >>> is_secret("aws_secret_access_key"), is_secret("aws_region")
    (True, False)
    """
    return name in ("key", "sig") or _SECRET.search(name.lower()) is not None


def shown(uri: str) -> str:
    """Return a URI as messages show it, without the values of its query and without a password.

    >>> shown("https://host/a.csv?sig=abc&se=1")
    'https://host/a.csv?sig=…&se=…'
    """
    masked = _USER.sub("…@", _QUERY.sub(r"\1=…", uri))
    return _TOKEN.sub("…", masked) if uri[:4].lower() == "http" else masked


def hidden(text: str) -> str:
    """Return a text without the credentials of its URIs, and of entries of dicts whose names tell secrets.

    >>> hidden("cannot read https://me:word@host/a, {'token': 'abc', 'region': 'x'}")
    "cannot read https://…@host/a, {'token': …, 'region': 'x'}"
    """
    if ":/" in text:
        text = _URI.sub(lambda found: shown(found[0]), text)
    if "': " in text or '": ' in text:
        text = _ENTRY.sub(lambda one: f"{one[1]}{one[2]}{one[1]}: …" if is_secret(one[2]) else one[0], text)
    return text


def without_options(text: str, options: Mapping[str, Any]) -> str:
    """Return a message of another library without the values of options, which may be credentials."""
    for value in options.values():
        if isinstance(value, Mapping):
            text = without_options(text, value)
        elif len(part := str(value)) > 3:
            text = text.replace(part, "…")
    return text


def described_option(name: str, value: Any) -> str:
    """Return the value of an argument or setting in words; of options of a store only the type, or a number.

    >>> described_option("storage_options", ["abc"]), described_option("n", -1)
    ('a list', '-1')
    """
    of_store = (
        name.rpartition(".")[2] in ("storage_options", "retry_seconds") or ".storage_options." in f".{name}"
    )
    hides = is_secret(name) or (of_store and not isinstance(value, int | float))
    return f"a {type(value).__name__}" if hides else hidden(repr(value))


def hides_credentials(kind: C) -> C:
    """Decorate a dataclass: its repr has no credentials."""
    of: Any = kind
    plain = of.__repr__
    of.__repr__ = lambda self: hidden(plain(self))
    return kind
