"""Arguments and options that several commands take, and the settings of a job that they replace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqflow.cli import completion

if TYPE_CHECKING:
    from seqflow.engine import EngineSettings

JobPath = Annotated[Path, typer.Argument(metavar="JOB", help="The job: a TOML file.")]
JobInput = Annotated[
    list[str] | None, typer.Option(help="Of a job: read this file, folder or glob instead; may be repeated.")
]
JobSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Of a job: override a setting: batch.capacity=4096",
        autocompletion=completion.settings,
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        help="The kind, where the name does not say: `seqflow info` lists them; or module:function.",
        autocompletion=completion.kinds,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(help="Which rows: a condition on the source's columns, such as \"lang == 'py'\"."),
]
Engine = Annotated[
    str | None,
    typer.Option(
        help="Who does it: local (this machine) or ray (a Ray cluster).", autocompletion=completion.engines
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="How many processes do it at once; without, this one does all.")
]
Address = Annotated[
    str | None, typer.Option(help="Ray's cluster: host:port, auto (the one here), or local (start one).")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file that is there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def engine_settings(engine: str | None, workers: int | None, address: str | None) -> EngineSettings:
    """The engine of these options; JobError for one that there is not."""
    from seqflow.engine import EngineSettings
    from seqflow.errors import JobError

    if engine not in (None, "local", "ray"):
        raise JobError(f"--engine is {engine!r}, expected local or ray")
    return EngineSettings(kind="ray" if engine == "ray" else "local", workers=workers, address=address)


def import_kind(kind: str | None) -> None:
    """Import the module of a kind of the user's own, from the current folder, too."""
    from seqflow.job.modules import import_modules
    from seqflow.providers.own_kinds import module_of

    module = module_of(kind or "")
    if module:
        import_modules((module,), Path())


def overrides_of(
    settings: list[str] | None, input: list[str] | None, output: str | None = None
) -> dict[str, Any]:
    """The settings of a job that the options replace, by dotted name."""
    from seqflow.errors import JobError
    from seqflow.job.toml import parse_value

    overrides: dict[str, Any] = {}
    for setting in settings or []:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise JobError(f"--set {setting}: expected KEY=VALUE, such as batch.capacity=4096")
        overrides[name.strip()] = parse_value(value.strip())
    if input:
        overrides["source.paths"] = input
    if output is not None:
        overrides["output.path"] = output
    return overrides


def is_job(
    sources: list[str],
    kind: str | None,
    where: str | None,
    input: list[str] | None,
    settings: list[str] | None,
) -> bool:
    """Whether the source is a job file; JobError for options of a job where it is none, and for its own elsewhere."""
    from seqflow.errors import JobError

    if len(sources) == 1 and sources[0].endswith(".toml") and kind is None:
        if where is not None:
            raise JobError("--where: a job says which rows are kept; write --set 'source.where=…'")
        return True
    if input or settings:
        raise JobError(f"{sources[0]} is no job (a TOML file), so --input and --set have nothing to change")
    return False
