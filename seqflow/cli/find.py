"""`seqflow find JOB --file F --row N`."""

from pathlib import Path
from typing import Annotated

import typer

from seqflow.cli.job_options import AsJson, JobInput, JobPath, JobSettings, overrides_of, read_job
from seqflow.cli.printing import print_json, say


def find(
    job: JobPath,
    file: Annotated[str | None, typer.Option(help="A file of the source.")] = None,
    row: Annotated[int | None, typer.Option(min=0, help="A row of it, from 0.")] = None,
    rows: Annotated[
        Path | None, typer.Option(help="Many rows: a table with the columns `file` and `row`.")
    ] = None,
    epoch: Annotated[int, typer.Option(min=0, help="The epoch.")] = 0,
    upto: Annotated[int | None, typer.Option(min=0, help="Look at batches before this one only.")] = None,
    input: JobInput = None,
    set_: JobSettings = None,
    json: AsJson = False,
) -> None:
    """Print the batches that have a row of a file."""
    import pyarrow as pa

    from seqflow.errors import JobError
    from seqflow.job.row_traces import open_traceable
    from seqflow.loader.seen import batches_of_rows, file_of
    from seqflow.providers import open as open_source

    if (rows is None) == (file is None) or (row is None) != (file is None):
        raise JobError("find: expected --file and --row, or --rows, a table with the columns file and row")
    pipeline = open_traceable(read_job(job, overrides_of(set_, input))).pipeline
    asked: list[tuple[object, object]] = [(file, row)]
    if rows is not None:
        source, names = open_source(rows), ["file", "row"]
        table = pa.concat_tables([source.read(block, names) for block in source.blocks()])
        asked = [*zip(table["file"].to_pylist(), table["row"].to_pylist(), strict=True)]
    keys = [(file_of(pipeline, str(one)), int(str(number))) for one, number in asked]
    found = batches_of_rows(pipeline, set(keys), epoch, upto)
    if json:
        print_json(
            [{"file": key[0], "row": key[1], "found": [one._asdict() for one in found[key]]} for key in keys]
        )
        return
    for key in keys:
        places = ", ".join(f"batch {one.batch} (row {one.row})" for one in found[key])
        say(f"{key[0]}, row {key[1]}: {places or 'in no batch'}")
