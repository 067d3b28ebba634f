"""Options of stores, with the keys that users of Polars, Delta Lake and fsspec type."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from seqflow.arguments import SECONDS_TO_WAIT, is_wait
from seqflow.errors import ProviderOptionError
from seqflow.hidden import described_option, is_secret

RETRY_SECONDS = 60.0
_READ_TIMEOUT, _CONNECT_TIMEOUT = "10s", "5s"
_OF_FSSPEC = {
    "key": "access_key_id",
    "secret": "secret_access_key",
    "token": "session_token",
    "endpoint_url": "endpoint",
    "region_name": "region",
    "anon": "skip_signature",
}
"""Keys of fsspec for S3 and the client's."""
_OF_CLIENT = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "default_headers",
    "http1_only",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
    "read_timeout",
    "timeout",
    "user_agent",
)
TIMES = ("connect_timeout", "read_timeout", "timeout")
"""Options among them that say how long one request waits."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


class StoreOptions(NamedTuple):
    """Options of a store, as its client takes them."""

    config: dict[str, Any]
    client: dict[str, Any]
    retry_seconds: float


def store_options(options: Mapping[str, Any], scheme: str) -> StoreOptions:
    """Divide `storage_options`; raise ProviderOptionError for a malformed value."""
    config: dict[str, Any] = {}
    client: dict[str, Any] = {
        "read_timeout": _READ_TIMEOUT,
        "connect_timeout": _CONNECT_TIMEOUT,
        "timeout": "600s",
    }
    seconds, given = RETRY_SECONDS, dict(options)
    for name, value in dict(given.pop("client_kwargs", None) or {}).items():
        given.setdefault(name, value)
    for name, value in given.items():
        bare = re.sub("^(aws|azure|google)_", "", name)
        if name == "retry_seconds":
            seconds = _seconds(value)
        elif bare in _OF_CLIENT:
            client[bare] = _time(name, value) if bare in TIMES else value
        elif value is not None:
            config[_OF_FSSPEC.get(name, name) if scheme in ("s3", "s3a") else name] = value
    endpoint = next((value for name, value in config.items() if "endpoint" in name), None)
    if str(endpoint or os.environ.get("AWS_ENDPOINT_URL", "")).startswith("http:") or scheme == "http":
        client.setdefault("allow_http", True)
    return StoreOptions(config, client, seconds)


def texts_of_options(options: Mapping[str, Any], scheme: str) -> dict[str, str]:
    """Return `storage_options` as packages of tables take them, whose client in Rust is the same: values as text."""
    config, client, _ = store_options(options, scheme)
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in {**client, **config}.items()
        if isinstance(value, str | int | float)
    }


def secret_in(options: Mapping[str, Any]) -> str | None:
    """Return the name of the first option, also of one inside another, whose value is secret; None without any."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            if (inner := secret_in(value)) is not None:
                return inner
        elif is_secret(name):
            return name
    return None


def has_profile() -> bool:
    """Return whether this machine has profiles of AWS, and no keys in the environment."""
    named = "AWS_PROFILE" in os.environ or (Path.home() / ".aws" / "credentials").exists()
    return named and "AWS_ACCESS_KEY_ID" not in os.environ


def _seconds(value: Any) -> float:
    if not is_wait(value):
        raise ProviderOptionError(
            f"storage_options: retry_seconds is {described_option('retry_seconds', value)}, expected a number of "
            f"{SECONDS_TO_WAIT}"
        )
    return float(value)


def _time(name: str, value: Any) -> Any:
    """Return a time as the client takes it; raise ProviderOptionError unless it is a time of at most a day."""
    parts = re.findall(r"([\d.]+)\s*([a-z]*)", value) if isinstance(value, str) else ()
    known = all(unit in _UNITS and amount.count(".") < 2 for amount, unit in parts)
    if not known or not is_wait(sum(float(amount) * _UNITS[unit] for amount, unit in parts)):
        raise ProviderOptionError(
            f"storage_options: {name} is not a time of at most a day, expected one such as '10s' or '500ms'"
        )
    return value
