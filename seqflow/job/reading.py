"""Read the sections of a job from TOML or a dict: check keys and types, locate paths, name the line in errors."""

import glob
import os
import re
import sys
import tomllib
import typing
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

from seqflow.arguments import WORDS, Count, PathText, choices, described, fits, is_path
from seqflow.curation.rules import RULES, Rule
from seqflow.deprecated_names import renamed_arguments
from seqflow.errors import ExpressionError, JobError, NetError, OpError, ProviderOptionError, nearest
from seqflow.files.options import secret_in
from seqflow.files.uris import is_uri
from seqflow.hidden import described_option, shown
from seqflow.job.modules import import_modules
from seqflow.job.sections import (
    BATCH_KINDS,
    MixSection,
    MixSource,
    NetSection,
    OrderSection,
    OutputSection,
    ServedSection,
    ServeSection,
    SourceSection,
    StoreSection,
    keys_of,
)
from seqflow.job.toml import line_of
from seqflow.loader import BadRows, Balance, BatchPlan, Rows, Schedule, TokenBudget
from seqflow.loader.epoch.assign_ranks import spans_of
from seqflow.loader.order.conditions import conditions_of
from seqflow.loader.plans.balanced_pools import totals_of
from seqflow.loader.plans.shares import shares_of
from seqflow.providers.bad_files import BadFiles
from seqflow.providers.formats.options import FORMATS, check_option, option_types
from seqflow.providers.opening import check_kind, check_kind_of_format
from seqflow.workers import EngineSettings

T = TypeVar("T")

_OPTION_TYPES = option_types()

_POINTS = Annotated[
    tuple[tuple[float, float], ...], bool, "pairs of a batch and a weight, [[0, 0.8], [10_000, 0.2]]"
]
_OF_SERVED = ("source", "output", "skip")
"""Sections and keys of a job whose batches are served."""
_OF_STORE = tuple(one.name for one in keys_of(StoreSection))


@dataclass(frozen=True, slots=True)
class JobFile:
    """File that settings come from, for error messages and relative paths."""

    name: str
    text: str
    folder: Path
    overridden: Mapping[str, Any] = field(default_factory=dict)
    """Settings that were replaced, by their dotted names."""
    located: dict[str, Any] = field(default_factory=dict)
    """Paths among them that have been read, as paths that mean the same in any folder."""

    def place(self, name: str) -> str:
        """Return the place of a setting: `job.toml, line 7`, or the `--set` that gave it."""
        if name in self.overridden:
            return f"--set {name}"
        line = line_of(self.text, name)
        return self.name if line is None else f"{self.name}, line {line}"

    def locate(self, name: str, path: str) -> str:
        """Return the path in the setting `name`: relative to the job's folder, or to the current one for an
        override.
        """
        path = os.path.expanduser(path)
        if name in self.overridden or path.startswith("{") or "://" in path:
            return path
        folder = str(self.folder)
        if folder == "." or os.path.isabs(path):
            return path
        if glob.has_magic(path):
            return os.path.join(glob.escape(folder), path)
        return _without_parents(os.path.join(folder, path))

    def fail(self, name: str, message: str) -> NoReturn:
        raise JobError(f"{self.place(name)}: {message}")

    @contextmanager
    def naming(self, name: str) -> Iterator[None]:
        """Translate an error about the setting `name` into a JobError that names its line."""
        try:
            yield
        except (OpError, ProviderOptionError, NetError, ExpressionError) as error:
            self.fail(name, error.told("job"))


def place_of(file: Path | None, overrides: Mapping[str, Any], name: str) -> str:
    """Return the place of a setting of a job that has been read: `job.toml, line 7`, or `--set` with its name."""
    try:
        text = "" if file is None else file.read_text(encoding="utf-8")
    except (OSError, ValueError):  # the file has gone since
        text = ""
    return JobFile("job" if file is None else str(file), text, Path(), overrides).place(name)


def _without_parents(path: str) -> str:
    """Shorten `jobs/../out` to `out`, unless a symbolic link makes the two different places.

    A separator at the end stays, because it marks a folder.
    """
    short = os.path.normpath(path) + os.sep * path.endswith(os.sep)
    return short if os.path.realpath(short) == os.path.realpath(path) else path


def read_sections(
    path: Path, overrides: Mapping[str, Any], only: Container[str] | None = None
) -> dict[str, Any]:
    """Return the fields of the Job in a TOML file, with some settings replaced; raise JobError for a malformed
    file or setting.

    With `only`, all other sections are ignored, and constants whose files are not there.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise JobError(f"there is no job file {str(path)!r}") from None
    except (OSError, ValueError) as error:
        raise JobError(f"cannot read the job file {str(path)!r}: {error}") from None
    try:
        tables = tomllib.loads(text)
    except (
        ValueError,
        RecursionError,
    ) as error:  # tomllib's own error, or a number or nesting beyond Python's limits
        place = re.search(r"at line (\d+)", str(error))
        line = text.splitlines()[int(place[1]) - 1 :][:1] if place is not None else []
        raise JobError("\n  ".join([f"{path}: not TOML: {error}", *line])) from None
    job_file = JobFile(str(path), text, path.parent, overrides)
    for name, value in overrides.items():
        _override(tables, name, value)
        if name == "bad_rows.policy" and value != "quarantine" and "bad_rows.path" not in overrides:
            tables["bad_rows"].pop("path", None)  # of the policy that is replaced
    _check_known(_READERS, tables, "", job_file)
    if only is not None:
        tables = {name: tables[name] for name in tables if name in only}
        constants = _table(tables, "constants", job_file)
        tables["constants"] = {
            name: file
            for name, file in constants.items()
            if not isinstance(file, str) or os.path.isfile(job_file.locate(f"constants.{name}", file))
        }
    return _sections(tables, job_file)


def sections_from_tables(tables: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the fields of the Job that a dict describes; raise JobError for a malformed setting."""
    return _sections(tables, JobFile("job", "", folder))


def _override(tables: dict[str, Any], name: str, value: Any) -> None:
    *outer, last = name.split(".")
    for part in outer:
        inner = tables.setdefault(part, {})
        if not isinstance(inner, dict):
            raise JobError(f"--set {name}: {part!r} is {inner!r}, not a section")
        tables = inner
    tables[last] = value


def _sections(tables: Mapping[str, Any], job_file: JobFile) -> dict[str, Any]:
    _check_known(_READERS, tables, "", job_file)
    values = {name: read(tables, job_file) for name, read in _READERS.items()}
    return {**values, "folder": job_file.folder, "overrides": {**job_file.overridden, **job_file.located}}


def _source(tables: Mapping[str, Any], job_file: JobFile) -> SourceSection:
    if "mix" in tables:
        if "source" in tables:
            job_file.fail("source", "there are [source] and [mix], expected one of them")
        return SourceSection()
    if "source" not in tables:
        job_file.fail("source", "there is no [source]; its paths say what to read")
    if "served" in _table(tables, "source", job_file):
        return SourceSection(served=_served(tables, job_file))
    return _one_source("source", tables, job_file)


def _served(tables: Mapping[str, Any], job_file: JobFile) -> ServedSection:
    """Return the keys of a source that servers serve; raise JobError for settings that their job has."""
    sections = {name: name for name, table in tables.items() if name not in _OF_SERVED and table != {}}
    own = {one.name for one in keys_of(ServedSection)}
    known = {one.name for one in keys_of(SourceSection)} | {*_OF_STORE, *FORMATS}
    keys = {f"source.{key}": key for key in _table(tables, "source", job_file) if key in known - own}
    for full, name in {**keys, **sections}.items():
        job_file.fail(
            full,
            f"{name} is given next to source.served: the batches are made by servers\n"
            f"  write {name} in the job of the servers",
        )
    return _section(ServedSection, "source", tables, job_file)


def _one_source(name: str, tables: Mapping[str, Any], job_file: JobFile) -> SourceSection:
    table = _table(tables, name, job_file)
    format, given = _options_of_format(name, table, job_file)
    elsewhere = (*FORMATS, *_OF_STORE)
    further = (*elsewhere, "served") if name == "source" else elsewhere
    rest = {key: value for key, value in table.items() if key not in elsewhere}
    source = replace(
        _section(SourceSection, name, {name: rest}, job_file, further=further),
        format=format,
        given=given,
        store=_store(name, {key: table[key] for key in _OF_STORE if key in table}, job_file),
    )
    is_own = source.kind is not None and ":" in source.kind
    if source.kind is not None and not is_own:
        with job_file.naming(f"{name}.kind"):
            check_kind(source.kind)
            if format:
                check_kind_of_format(source.kind, format, f"[{name}.{format}]")
    if source.options is not None and not is_own:
        job_file.fail(f"{name}.options", 'options are passed to a function, kind = "module:function"')
    if "paths" not in tables[name] and not is_own:
        job_file.fail(name, f"[{name}] needs 'paths'")
    if not source.paths and not is_own:
        job_file.fail(f"{name}.paths", "paths is empty, expected at least one path")
    return source


def _store(name: str, table: Mapping[str, Any], job_file: JobFile) -> StoreSection:
    return _section(StoreSection, name, {name: table}, job_file)


def _options_of_format(name: str, table: Mapping[str, Any], job_file: JobFile) -> tuple[str, dict[str, Any]]:
    """Return the format that has a section in this one, and its options; "" if none has."""
    format, *others = [key for key in table if key in FORMATS] or [""]
    if not format:
        return "", {}
    place = f"{name}.{format}"
    if others:
        shown = f"[{name}.{others[0]}] is given next to [{place}], expected one of them"
        job_file.fail(f"{name}.{others[0]}", shown)
    given = _table({place: table[format]}, place, job_file)
    for key in given:
        with job_file.naming(f"{place}.{key}"):
            check_option(key, FORMATS[format], f"[{place}]")
    values = {
        key: _value(value, _OPTION_TYPES[key], f"{place}.{key}", job_file)
        for key, value in given.items()
        if value is not None
    }
    return format, values


def _mix(tables: Mapping[str, Any], job_file: JobFile) -> MixSection | None:
    if "mix" not in tables:
        return None
    given = dict(_table(tables, "mix", job_file))
    entries = _checked(given.get("sources", ()), tuple[dict[str, Any], ...], "mix.sources", job_file)
    if not entries:
        job_file.fail("mix", "[mix] has no sources, expected a section [[mix.sources]] for each")
    sources = tuple(_mix_source(number, entry, job_file) for number, entry in enumerate(entries))
    names = [source.name for source in sources]
    for number, name in enumerate(names):
        if name in names[:number]:
            job_file.fail(
                f"mix.sources.{number}", f"two sources have the name {name!r}\n  give one another name"
            )
    _no_key_of_one_source(tables, job_file)
    rest = {key: value for key, value in given.items() if key != "sources"} | {"sources": sources}
    return _section(MixSection, "mix", {"mix": rest}, job_file)


def _mix_source(number: int, entry: Mapping[str, Any], job_file: JobFile) -> MixSource:
    name = f"mix.sources.{number}"
    rest = {key: value for key, value in entry.items() if key not in ("name", "weight")}
    source = _one_source(name, {name: rest}, job_file)
    paths = source.paths if isinstance(source.paths, str) else ", ".join(source.paths)
    own = {
        "name": shown(paths) or source.kind,
        **{key: entry[key] for key in entry if key in ("name", "weight")},
    }
    if isinstance(own.get("weight"), Mapping):
        own["weight"] = _schedule(own["weight"], f"{name}.weight", job_file)
    return _section(MixSource, name, {name: {**own, "source": source}}, job_file, "[[mix.sources]]")


def _schedule(weight: Mapping[str, Any], name: str, job_file: JobFile) -> Schedule:
    _check_known(("points", "linear"), weight, name, job_file, "a weight")
    points = _checked(weight.get("points"), _POINTS, f"{name}.points", job_file)
    linear = _checked(weight.get("linear", False), bool, f"{name}.linear", job_file)
    with job_file.naming(name):
        return Schedule(dict(points), linear=linear)


def _no_key_of_one_source(tables: Mapping[str, Any], job_file: JobFile) -> None:
    """Raise JobError for a key that a mix does not take."""
    if "index" in _table(tables, "order", job_file):
        job_file.fail("order.index", "index has the lengths of one source, and [mix] has several")
    engine = _section(EngineSettings, "engine", tables, job_file)
    if engine.has_workers:
        job_file.fail(
            "engine",
            "a mix is made by one process: which source is next depends on all batches before\n"
            "  leave out workers and kind; threads= of [order] are used",
        )


def _transform(name: str, tables: Mapping[str, Any], job_file: JobFile) -> NetSection:
    transform = _section(NetSection, name, tables, job_file)
    if transform.file is not None:
        _check_file(f"{name}.file", transform.file, job_file)
    return transform


def _check_file(name: str, path: str, job_file: JobFile) -> None:
    if is_uri(path):
        job_file.fail(
            name,
            f"{shown(path)!r} is a URI, and only sources are read from stores\n  copy it to this machine",
        )
    if not os.path.isfile(path):
        job_file.fail(name, f"there is no file {path!r}")


def _batch(tables: Mapping[str, Any], job_file: JobFile) -> BatchPlan:
    batch = tables.get("batch", 256)
    if fits(batch, int):
        tables = {"batch": {"n": batch}}
    elif not isinstance(batch, Mapping):
        job_file.fail("batch", f"batch is {batch!r}, expected a number of rows or a section [batch]")
    table = _table(tables, "batch", job_file)
    kind = table.get("kind", "rows")
    is_own = isinstance(kind, str) and ":" in kind
    if not is_own and (not isinstance(kind, str) or kind not in BATCH_KINDS):
        expected = " or ".join(map(repr, (*BATCH_KINDS, "module:Name")))
        _wrong(kind, "kind", expected, "batch.kind", job_file, BATCH_KINDS)
    arguments = {key: value for key, value in table.items() if key not in ("kind", "balance")}
    title = f'[batch] with kind = "{kind}"'
    if kind == "buckets":
        arguments = _with_inner_plan(arguments, job_file, title)
    spec: Callable[..., BatchPlan] = _own_plan(kind, job_file) if is_own else BATCH_KINDS[kind]
    plan = _section(spec, "batch", {"batch": arguments}, job_file, title)
    if "balance" not in table:
        return plan
    if "balance" not in getattr(plan, "__dataclass_fields__", ()):
        job_file.fail("batch.balance", f"{title} has no 'balance'")
    balance = _section(Balance, "batch.balance", {"batch.balance": table["balance"]}, job_file)
    return replace(plan, balance=balance)  # type: ignore[type-var]


def _own_plan(kind: str, job_file: JobFile) -> type[BatchPlan]:
    """Return the plan from a module in the job's folder or an installed one."""
    module, _, name = kind.partition(":")
    try:
        import_modules((module.strip(),), job_file.folder)
    except JobError as error:
        job_file.fail("batch.kind", f"kind: {error.told('job')}")
    known = vars(sys.modules[module.strip()])
    found = known.get(name.strip())
    if not isinstance(found, type) or not issubclass(found, BatchPlan):
        plans = [one for one, of in known.items() if isinstance(of, type) and issubclass(of, BatchPlan)]
        _wrong(kind, "kind", "the name of a dataclass that inherits BatchPlan", "batch.kind", job_file, plans)
    return found


def _with_inner_plan(arguments: Mapping[str, Any], job_file: JobFile, title: str) -> dict[str, Any]:
    """Return the arguments of Buckets: its boundaries, and the plan that the other keys describe."""
    own = {key: value for key, value in arguments.items() if key == "boundaries"}
    rest = {key: value for key, value in arguments.items() if key not in own}
    inner: Callable[..., Any] = TokenBudget if "max_tokens" in rest else Rows
    if own and inner is Rows and "n" not in rest:
        job_file.fail("batch", f"{title} needs 'n' rows, or 'max_tokens'")
    return {
        **own,
        "plan": _section(inner, "batch", {"batch": rest}, job_file, title, further=("boundaries",)),
    }


def _constants(tables: Mapping[str, Any], job_file: JobFile) -> dict[str, str]:
    files = {}
    for name, file in _table(tables, "constants", job_file).items():
        full = f"constants.{name}"
        files[name] = _value(file, PathText, full, job_file)
        _check_file(full, files[name], job_file)
    return files


def _conditions(name: str, tables: Mapping[str, Any], job_file: JobFile) -> tuple[str, ...]:
    texts = _key(name, str | tuple[str, ...], partial(conditions_of, name), tables, job_file)
    return texts if isinstance(texts, tuple) else (texts,) * bool(texts)


def _skip(tables: Mapping[str, Any], job_file: JobFile) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, _key("skip", tuple[tuple[int, ...], ...], spans_of, tables, job_file)))


def _key(
    name: str, hint: Any, check: Callable[[Any], object], tables: Mapping[str, Any], job_file: JobFile
) -> Any:
    """Return a key at the top of the file, () without one; `check` raises an error for a wrong value."""
    value = _checked(tables.get(name, ()), hint, name, job_file)
    with job_file.naming(name):
        check(value or None)
    return value


def _share(tables: Mapping[str, Any], job_file: JobFile) -> dict[str, str | bool]:
    share: dict[str, str | bool] = _checked(tables.get("share", {}), dict[str, str | bool], "share", job_file)
    with job_file.naming("share"):
        shares_of(share_argument(share))
    return share


def share_argument(share: Mapping[str, str | bool]) -> dict[tuple[str, ...], str | None]:
    """Return the columns that share as `Loader` takes them; raise OpError for false."""
    if (off := next((columns for columns, key in share.items() if key is False), None)) is not None:
        raise OpError(
            f"share.{off} is false, expected the name of a column, or true, which compares the lists"
        )
    return {
        tuple(name.strip() for name in columns.split(",")): None if key is True else str(key)
        for columns, key in share.items()
    }


def _rule(name: str, tables: Mapping[str, Any], job_file: JobFile) -> Rule | None:
    if name not in tables:
        return None
    if "mix" in tables:
        job_file.fail(
            name,
            f"[{name}] compares the rows of one source, and [mix] has several\n"
            "  curate each, or all files in one [source], and mix the outputs",
        )
    rule: Rule = _section(SECTIONS[name][0], name, tables, job_file)
    return rule


def _steps_of(tables: Mapping[str, Any], job_file: JobFile) -> int | None:
    steps_of: int | None = _checked(tables.get("steps_of"), Count | None, "steps_of", job_file)
    if steps_of is not None and not tables.get("totals"):
        job_file.fail("steps_of", "steps_of is given, but no totals, of which it says the steps")
    if steps_of is not None and "balance" in _table(tables, "batch", job_file):
        job_file.fail("steps_of", "steps_of is given, and [batch.balance] has its own, expected one of them")
    return steps_of


def _section(
    section: Callable[..., T],
    name: str,
    tables: Mapping[str, Any],
    job_file: JobFile,
    title: str = "",
    further: tuple[str, ...] = (),
) -> T:
    """Return a section, after checking every value against the type of its field. `further` keys are read
    elsewhere.
    """
    table = _table(tables, name, job_file)
    try:
        table = renamed_arguments(getattr(section, "__name__", name), table, shown=f"[{name}]")
    except TypeError as error:
        job_file.fail(name, str(error))
    known = {one.name: one for one in keys_of(section)}  # type: ignore[arg-type]
    _check_known([*further, *known], table, name, job_file, title)
    hints = typing.get_type_hints(section, include_extras=True)
    values = {key: _value(value, hints[key], f"{name}.{key}", job_file) for key, value in table.items()}
    for key, one in known.items():
        if key not in values and one.default is MISSING and one.default_factory is MISSING:
            job_file.fail(name, f"{title or f'[{name}]'} needs {key!r}")
    try:
        return section(**values)
    except (OpError, ProviderOptionError) as error:
        argument = error.argument.partition("[")[0]
        place = f"{name}.{argument}" if argument in values else name
        job_file.fail(place, f"[{name}] {error.told('job')}")


def _table(tables: Mapping[str, Any], name: str, job_file: JobFile) -> Mapping[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, Mapping):
        job_file.fail(name, f"{name} is {table!r}, expected a section [{name}]")
    return table


def _check_known(
    known: Iterable[str], table: Mapping[str, Any], name: str, job_file: JobFile, title: str = ""
) -> None:
    for key, value in table.items():
        if key in known:
            continue
        full = f"{name}.{key}" if name else key
        what = f"unknown key {key!r} in {title or f'[{name}]'}" if name else f"unknown section [{key}]"
        if not name and not isinstance(value, Mapping):
            what = f"unknown key {key!r}"
        # "path" is a slip for "paths" in [source], although [output] has it
        is_slip = any(one.startswith(key) or key.startswith(one) for one in known)
        there = [] if is_slip or "." in name else _places_of(key)
        have = f"; {' and '.join(there)} {'has' if len(there) == 1 else 'have'} it"
        full = next((set_name for set_name in job_file.overridden if set_name.startswith(f"{full}.")), full)
        job_file.fail(full, f"{what}{have if there else nearest(key, known)}\n  known are {', '.join(known)}")


def _places_of(key: str) -> list[str]:
    """Return the places of a job that take a key: sections, and the top of the file."""
    if key in SECTIONS:
        return [f"a section [{key}] of its own"]
    if key in FORMATS:
        return [f"[source] as [source.{key}]"]
    if key in _READERS:
        return ["the top of the file, before all sections,"]
    sections = {f"[{name}]": of for name, found in SECTIONS.items() if name != "mix" for of in found[:1]}
    sections |= {f"[source.{kind}]": of for kind, of in FORMATS.items()}
    kinds = [kind for kind, of in BATCH_KINDS.items() if _takes(of, key)]
    of_batch = f'[batch] with kind = "{kinds[0]}"' if len(kinds) == 1 else "[batch]"
    return [place for place, of in sections.items() if _takes(of, key)] + [of_batch] * bool(kinds)


def _takes(section: type, key: str) -> bool:
    return any(key == one.name for one in keys_of(section))


def _value(value: Any, hint: Any, name: str, job_file: JobFile) -> Any:
    """Return a setting of the annotated type, with paths located."""
    value = _checked(value, hint, name, job_file)
    if name.endswith(".storage_options") and job_file.text and value is not None:
        _check_no_secret(value, name, job_file)
    if value is None or not _names_files(hint):
        return value
    paths = value if isinstance(value, tuple) else (value,)
    found = tuple(job_file.locate(name, os.fspath(path)) for path in paths)
    if name in job_file.overridden:
        absolute = [
            path if path.startswith("{") or "://" in path else os.path.abspath(path) for path in found
        ]
        job_file.located[name] = absolute if isinstance(value, tuple) else absolute[0]
    return found if isinstance(value, tuple) else found[0]


def _names_files(hint: Any) -> bool:
    """Return whether a type is a path, or one that holds paths."""
    return hint is is_path or any(map(_names_files, typing.get_args(hint)))


def _check_no_secret(options: Mapping[str, Any], name: str, job_file: JobFile) -> None:
    """Raise JobError for a password or key in a job file, which is kept and shown to others."""
    if (secret := secret_in(options)) is not None:
        job_file.fail(
            f"{name}.{secret}",
            f"[{name}] has {secret!r}, expected no secrets in a job file\n"
            "  set an environment variable: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "AZURE_STORAGE_ACCOUNT_KEY, GOOGLE_SERVICE_ACCOUNT, or those of another store",
        )


def _checked(value: Any, hint: Any, name: str, job_file: JobFile) -> Any:
    """Return the value, with lists as tuples; raise JobError unless it has the annotated type."""
    if not fits(value, hint):
        _wrong(value, name.rpartition(".")[2], described(hint, _WORDS), name, job_file, choices(hint))
    return tuple(value) if isinstance(value, list) else value


def _wrong(
    value: Any, key: str, expected: str, name: str, job_file: JobFile, known: Iterable[str]
) -> NoReturn:
    guess = nearest(value, known) if isinstance(value, str) else ""
    job_file.fail(name, f"{key} is {described_option(name, value)}, expected {expected}{guess}")


_WORDS = {**WORDS, bool: "true or false", dict: "a table", Schedule: "{points = [[0, 0.8], …]}"}
"""Names of types in the terms of TOML."""
SECTIONS: Mapping[str, tuple[type, ...]] = {
    "source": (SourceSection, StoreSection, ServedSection),
    "mix": (MixSection, MixSource),
    **{rule.name: (rule,) for rule in RULES},
    "order": (OrderSection,),
    "prepare": (NetSection,),
    "batch": (),
    "net": (NetSection,),
    "output": (OutputSection,),
    "bad_rows": (BadRows,),
    "bad_files": (BadFiles,),
    "engine": (EngineSettings,),
    "serve": (ServeSection,),
}
"""Dataclasses whose fields are the keys of a section; those of [batch] are arguments of a plan."""
_READERS: Mapping[str, Callable[[Mapping[str, Any], JobFile], Any]] = {
    "source": _source,
    "mix": _mix,
    "prepare": partial(_transform, "prepare"),
    "batch": _batch,
    "net": partial(_transform, "net"),
    "constants": _constants,
    **{
        name: partial(_section, SECTIONS[name][0], name)
        for name in ("order", "output", "bad_rows", "bad_files", "engine", "serve")
    },
    **{rule.name: partial(_rule, rule.name) for rule in RULES},
    "keep": partial(_conditions, "keep"),
    "require": partial(_conditions, "require"),
    "skip": _skip,
    "totals": partial(_key, "totals", dict[str, str] | tuple[str, ...], totals_of),
    "share": _share,
    "steps_of": _steps_of,
    "imports": partial(_key, "imports", tuple[str, ...], bool),
}
"""Functions that read the sections and keys of a job."""
