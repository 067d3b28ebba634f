"""Arguments and options that several commands share, and the settings of a job that they replace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from seqflow.cli import printing

if TYPE_CHECKING:
    from seqflow.job import Job

JobPath = Annotated[Path, typer.Argument(metavar="JOB", help="The job: a TOML file.")]
JobInput = Annotated[
    list[str] | None, typer.Option(help="For a job: read this file, folder or glob instead; may be repeated.")
]
JobSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="For a job: override a setting: batch.capacity=4096",
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        help="Kind of the files, if the names do not show it: see `seqflow info`; or module:function.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(help="Keep rows that meet a condition on the columns, such as \"lang == 'py'\"."),
]
Schema = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULE",
        help="Types of columns that differ between files: unify, first, or NAME=TYPE; may be repeated.",
    ),
]
Policy: TypeAlias = Literal["raise", "skip"] | None
BadRowsPolicy = Annotated[
    Policy, typer.Option("--bad-rows", help="Stop at a row that cannot be read, or leave out such rows.")
]
BadFilesPolicy = Annotated[
    Policy, typer.Option("--bad-files", help="Stop at a damaged file, or leave out such files.")
]
StorageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        help="Option of the store that URIs name, such as aws_region=eu-west-1; may be repeated.",
    ),
]
Engine = Annotated[
    Literal["local", "ray"] | None, typer.Option(help="Run on this machine, or on a Ray cluster.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Number of worker processes (default: this process only).")
]
Address = Annotated[
    str | None, typer.Option(help="Ray's cluster: host:port, auto (the one here), or local (start one).")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def import_kind(kind: str | None) -> None:
    """Import the module of a user-defined kind, also from the current folder."""
    from seqflow.job.modules import import_modules
    from seqflow.providers.own_kinds import module_of

    module = module_of(kind or "")
    if module:
        import_modules((module,), Path())


def overrides_of(
    settings: list[str] | None, input: list[str] | None, output: str | None = None
) -> dict[str, Any]:
    """Return the settings of a job that the options replace, by dotted name."""
    overrides = _pairs("--set", settings, "batch.capacity=4096")
    if input:
        overrides["source.paths"] = input
    if output is not None:
        overrides["output.path"] = output
    return overrides


def read_job(path: Path | str, overrides: dict[str, Any]) -> Job:
    """Return the job in a file; errors from now on advise its settings."""
    from seqflow.job import Job

    printing.asked = "job"
    return Job.read(path, overrides)


def _pairs(option: str, given: list[str] | None, example: str) -> dict[str, Any]:
    from seqflow.errors import JobError
    from seqflow.job.toml import parse_value

    found: dict[str, Any] = {}
    for one in given or []:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise JobError(f"{option} {one}: expected KEY=VALUE, such as {example}")
        found[name.strip()] = parse_value(value.strip())
    return found


def storage_options(given: list[str] | None) -> dict[str, Any]:
    """Return the options of a store; raise JobError for a secret, which all users of a machine can see."""
    from seqflow.errors import JobError
    from seqflow.files.options import secret_in

    found = _pairs("--storage-option", given, "aws_region=eu-west-1")
    if (secret := secret_in(found)) is not None:
        raise JobError(
            f"--storage-option: {secret!r} is a secret, which all users of this machine can see in a command\n"
            "  set it in the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    return found


def open_options(
    schema: list[str] | None, bad_files: Policy = None, storage: list[str] | None = None
) -> dict[str, Any]:
    """Return the options of `sf.open`; raise JobError for a schema that is neither a rule nor types."""
    from seqflow.errors import JobError

    found: dict[str, Any] = {} if bad_files is None else {"bad_files": bad_files}
    if storage:
        found["storage_options"] = storage_options(storage)
    if schema in (["unify"], ["first"]):
        found["schema"] = schema[0]
    elif schema:
        types = {name.strip(): kind.strip() for name, _, kind in (one.partition("=") for one in schema)}
        for name, kind in types.items():
            if not (name and kind):
                raise JobError(
                    f"--schema {name or kind}: expected unify or first, or NAME=TYPE, such as 'ids=list<int64>'"
                )
        found["schema"] = types
    return found


_SETTINGS = {
    "where": "'source.where=…'",
    "schema": "'source.schema={NAME = \"TYPE\"}'",
    "bad_rows": "bad_rows.policy=skip",
    "bad_files": "bad_files.policy=skip",
    "storage_option": "source.storage_options.KEY=VALUE",
}
"""The `--set` that gives a setting of a job, by the option for files."""


def is_job(
    sources: list[str],
    kind: str | None,
    input: list[str] | None,
    settings: list[str] | None,
    **of_files: object,
) -> bool:
    """Return whether the source is a job file; raise JobError for options that do not fit this.

    `of_files` are the values of options that jobs have as settings.
    """
    from seqflow.errors import JobError

    if len(sources) == 1 and sources[0].endswith(".toml") and kind is None:
        for name, value in of_files.items():
            if value:
                option = name.replace("_", "-")
                raise JobError(f"--{option}: the job has this setting; write --set {_SETTINGS[name]}")
        printing.asked = "job"
        return True
    if input or settings:
        raise JobError(f"{sources[0]} is not a job (a TOML file), so --input and --set cannot be used")
    return False
