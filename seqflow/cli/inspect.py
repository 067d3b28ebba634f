"""`seqflow inspect PATH`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqflow.cli import job_options, printing
from seqflow.cli.exit_codes import BAD_DATA
from seqflow.cli.printing import print_json, print_table, say
from seqflow.cli.progress_line import progress_line
from seqflow.errors import spelled

if TYPE_CHECKING:
    from seqflow.report.source import SurveyedSource


def inspect(
    path: Annotated[str, typer.Argument(help="A file, folder or glob.")],
    batch: Annotated[int, typer.Option(min=1, help="Rows of the batches whose padding is reported.")] = 256,
    kind: job_options.Kind = None,
    where: job_options.Where = None,
    schema: job_options.Schema = None,
    bad_rows: job_options.BadRowsPolicy = None,
    bad_files: job_options.BadFilesPolicy = None,
    storage_option: job_options.StorageOption = None,
    json: job_options.AsJson = False,
) -> None:
    """Show what files hold: tensors, lengths, waste of padding.

    It reads all rows, and lists damaged files and rows that cannot be read. The exit code is 1 if there are some,
    unless --bad-files or --bad-rows leaves them out.
    """
    from seqflow.hidden import shown
    from seqflow.report.source import survey_of_path

    job_options.import_kind(kind)
    options = job_options.open_options(schema, storage=storage_option) | {"kind": kind, "where": where}
    with progress_line(show=not json):
        found = survey_of_path(path, batch, bad_rows=bad_rows, bad_files=bad_files, **options)
    if json:
        print_json(
            {"path": shown(path), "inferred": found.inferred, **found.facts(), **found.survey.summary()}
        )
    else:
        for note in filter(None, (found.inferred, *found.notes)):
            say(note)
        _print(found.survey.summary(), batch)
        print_faults(found)
        if found.survey.summary()["rows"]:
            _print_next(shown(path), kind)
    if not found.is_accepted(bad_rows, bad_files):
        if not json:
            say(spelled(LEAVE_BOTH, printing.asked))
        raise typer.Exit(BAD_DATA)


LEAVE_BOTH = "%(bad_files)s and %(bad_rows)s leave these out"


def print_faults(found: SurveyedSource) -> None:
    """Print each damaged file, and each reason of bad rows with the first of them."""
    if lines := [*found.lines()]:
        say("\n".join(["", *lines]))


def _print_next(path: str, kind: str | None) -> None:
    """Print the commands that go on with these files."""
    files = shlex.quote(path) + (f" --kind {shlex.quote(kind)}" if kind else "")
    say("\nnext")
    print_table(
        [
            (f"  seqflow report {files} -o report.html", "the same as a page, with a sample of rows"),
            (f"  seqflow init {files}", "job.toml: a job for these files, with comments"),
            ("  seqflow run job.toml --dry-run", "its windows, batches and memory"),
        ]
    )


def _print(summary: dict[str, Any], batch: int) -> None:
    say(f"{summary['rows']:,} rows in {summary['blocks']:,} blocks\n")
    lines = [
        (
            name,
            tensor["dtype"],
            " × ".join(map(str, ["N", *tensor["shape"]])),
            f"{tensor['nulls']:,}" if tensor["nulls"] else "",
            tensor["lengths"] or "",
        )
        for name, tensor in summary["tensors"].items()
    ]
    print_table(lines, header=("tensor", "dtype", "shape", "nulls", "described by"))
    for name, lengths in summary["lengths"].items():
        if lengths["sequences"]:
            _print_lengths(name, lengths, batch)


def _print_lengths(name: str, lengths: dict[str, Any], batch: int) -> None:
    say(
        f"\n{name}: {lengths['sequences']:,} sequences, {lengths['elements']:,} elements; "
        f"{lengths['shortest']:,} to {lengths['longest']:,}, mean {lengths['mean']:,.1f}\n"
        f"padding batches of {batch} to their longest wastes {lengths['padding']:.1%}"
    )
    most = max(entry["count"] for entry in lengths["histogram"])
    bars = [
        (
            f"{entry['from']:,}" if entry["from"] == entry["to"] else f"{entry['from']:,} – {entry['to']:,}",
            f"{entry['count']:,}",
            "█" * -(-entry["count"] * 40 // most),
        )
        for entry in lengths["histogram"]
    ]
    print_table(bars, right=(0, 1))
