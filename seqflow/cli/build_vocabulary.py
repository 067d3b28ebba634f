"""`seqflow build-vocabulary SOURCE COLUMN OUTPUT`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqflow.cli import job_options
from seqflow.cli.printing import print_json, print_table
from seqflow.cli.progress_line import progress_line

if TYPE_CHECKING:
    import pyarrow as pa


def build_vocabulary(
    source: Annotated[str, typer.Argument(help="A file, folder or glob, or a job: a TOML file.")],
    column: Annotated[
        str, typer.Argument(help="A column, or a part of it (tags.values); a tensor that a job prepares.")
    ],
    output: Annotated[Path, typer.Argument(help="The vocabulary: a name that ends in .arrow.")],
    min_count: Annotated[int, typer.Option(min=1, help="Leave out keys that occur more rarely.")] = 1,
    max_size: Annotated[
        int | None, typer.Option(min=1, help="Most ids, including 0 for unknown keys.")
    ] = None,
    kind: job_options.Kind = None,
    schema: job_options.Schema = None,
    bad_rows: job_options.BadRowsPolicy = None,
    bad_files: job_options.BadFilesPolicy = None,
    storage_option: job_options.StorageOption = None,
    input: job_options.JobInput = None,
    set_: job_options.JobSettings = None,
    overwrite: job_options.Overwrite = False,
    json: job_options.AsJson = False,
) -> None:
    """Write ids for the most frequent keys of a column.

    The vocabulary is a constant for encode and encode_strings; its file also has the count of each key.

    """
    from seqflow import providers
    from seqflow.job import Job, prepared_keys
    from seqflow.output.durable_files import writing
    from seqflow.output.overwriting import check_new_file
    from seqflow.providers.lenient import LenientReader
    from seqflow.vocabulary import Vocabulary
    from seqflow.vocabulary.counting import count, keys_of_column

    _check_output(output, overwrite)
    lenient = LenientReader()
    with progress_line(show=not json):
        if job_options.is_job(
            [source], kind, input, set_,
            schema=schema, bad_rows=bad_rows, bad_files=bad_files, storage_option=storage_option,
        ):  # fmt: skip
            job = Job.read_until_prepare(source, job_options.overrides_of(set_, input))
            loader = prepared_keys.prepared_loader(job)
            check_new_file("output", output, loader.source)
            counts = prepared_keys.count_prepared(loader, column)
        else:
            job_options.import_kind(kind)
            provider = providers.open(
                source, kind=kind, **job_options.open_options(schema, bad_files, storage_option)
            )
            check_new_file("output", output, provider)
            lenient = LenientReader.of(provider, bad_rows == "skip")
            counts = count(keys_of_column(provider, column, lenient))
    vocabulary = Vocabulary.of_counts(counts, min_count, max_size)
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
    vocabulary.save(output)
    report = _report(counts, vocabulary.size - 1)
    if json:
        print_json({**report, "ids": vocabulary.size, **lenient.facts(), "file": str(output)})
    else:
        share = report["kept_occurrences"] / max(1, report["occurrences"])
        lines = [
            ("keys", f"{report['keys']:,}, {report['occurrences']:,} times"),
            ("kept", f"{report['kept']:,}, {share:.1%} of all times"),
            ("ids", f"{vocabulary.size:,}, 0 for unknown keys"),
            *lenient.lines(),
            ("output", str(output)),
        ]
        print_table(lines)


def _check_output(output: Path, overwrite: bool) -> None:
    """Raise JobError when the file is not named like a vocabulary, or exists and is not one."""
    from seqflow.errors import JobError, ProviderError
    from seqflow.output.overwriting import check_unused
    from seqflow.vocabulary import Vocabulary

    if output.suffix != ".arrow":
        raise JobError(f"output: {str(output)!r} does not end in .arrow")
    if output.exists():
        try:
            Vocabulary.load(output)
        except ProviderError:
            raise JobError(
                f"output: {str(output)!r} exists and is not a vocabulary\n  choose a new name"
            ) from None
    check_unused(output, overwrite)


def _report(counts: pa.Table, kept: int) -> dict[str, int]:
    """Return number and occurrences of the keys, of all and of the `kept` most frequent ones."""
    import numpy as np

    times = np.sort(counts["count"].to_numpy())[::-1]
    return {
        "keys": len(times),
        "occurrences": int(times.sum()),
        "kept": kept,
        "kept_occurrences": int(times[:kept].sum()),
    }
