"""Options of file formats: a frozen dataclass for each format."""

import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar, dataclass_transform, get_type_hints

from seqflow.arguments import checked
from seqflow.byte_sizes import parse_bytes
from seqflow.errors import ProviderOptionError, nearest
from seqflow.providers.file_set import FileSet
from seqflow.providers.provider import Provider

F = TypeVar("F", bound="Format")


class Format:
    """Options of one file format, with the function that opens its files."""

    __slots__ = ()
    kind: ClassVar[str]
    """Name of the format, as `kind=` takes it."""

    def open(self, files: FileSet) -> Provider:
        """Open files of this format as a provider of the picked columns."""
        raise NotImplementedError


FORMATS: dict[str, type[Format]] = {}
"""The options of each format, by its kind."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def file_format(kind: str) -> Callable[[type[F]], type[F]]:
    """Decorate a class whose fields are the options of a format; their types are checked."""

    def decorate(options: type[F]) -> type[F]:
        made: Any = dataclass(frozen=True, slots=True, kw_only=True)(options)
        create, made.kind = made.__init__, kind

        @functools.wraps(create)
        def init(self: Any, *args: Any, **given: Any) -> None:
            for name in given:
                check_option(name, made, "this")
            create(self, *args, **given)

        made.__init__ = init
        FORMATS[kind] = checked(ProviderOptionError, methods=False)(made)
        return FORMATS[kind]  # type: ignore[return-value]

    return decorate


def names_of(options: type[Format]) -> list[str]:
    """Return the names of the options of a format."""
    return [one.name for one in fields(options)]  # type: ignore[arg-type]


def option_types() -> dict[str, Any]:
    """Return the types of the options of all formats by name."""
    hints = {one: get_type_hints(one) for one in FORMATS.values()}
    return {name: types[name] for one, types in hints.items() for name in names_of(one)}


def check_option(name: str, options: type[Format], source: str) -> None:
    """Raise ProviderOptionError for an option that the format does not have; it names the formats that do."""
    known = names_of(options)
    if name in known:
        return
    owners = [one.__name__ for one in FORMATS.values() if name in names_of(one)]
    if owners:
        raise ProviderOptionError(
            f"{name!r} is an option of {', '.join(owners)}, and {source} is {options.__name__}"
        )
    raise ProviderOptionError(
        f"{options.__name__} has no option {name!r}{nearest(name, known)}; it has {', '.join(known)}"
    )


def options_of(kind: str, format: Format | None, given: Mapping[str, Any], source: str) -> Format:
    """Return the options of files of this kind; raise ProviderOptionError for those `given` outside of `format`."""
    options = FORMATS[kind]
    for name in given:
        check_option(name, options, source)
        spelling = f"format=sf.{options.__name__}({name}=…), in a job in the section [source.{kind}]"
        raise ProviderOptionError(f"{name!r} is an option of {options.__name__}\nwrite {spelling}")
    return format or options()


def smaller_blocks(kind: str) -> str:
    """Return how to get smaller blocks from a source of this kind: advice of an error, the end of a sentence."""
    if kind in FORMATS and "batch_bytes" in names_of(FORMATS[kind]):
        return f"lower %({kind}.batch_bytes)s"
    if kind in ("memory", "stream", "hugging face"):
        return "lower %(batch_bytes)s"
    if kind == "own":
        return "make smaller blocks in the source"
    return f"write files with smaller {'record batches' if kind == 'arrow' else 'row groups'}"


def byte_count(given: int | str, name: str = "batch_bytes") -> int:
    """Return the bytes that an option gives; raise ProviderOptionError unless they are a positive number."""
    try:
        count = parse_bytes(given if isinstance(given, str) else operator.index(given))
    except (ValueError, TypeError):
        count = 0
    if not 0 < count < 2**63:
        raise ProviderOptionError(f"{name} is {given!r}, expected bytes as a number or text such as '8 MiB'")
    return count
