"""`seqflow inspect PATH`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from seqflow.cli.job_options import AsJson, Kind, Where, import_kind
from seqflow.cli.printing import print_json, print_table, say
from seqflow.cli.progress_line import progress_line

EXAMPLES = (
    ("seqflow inspect docs/", "Tensors, nulls, a histogram of lengths."),
    (
        'seqflow inspect docs/ --where "lengths(tokens) > 2" --batch 32',
        "Some rows only; the waste of padding in batches of 32.",
    ),
    ("seqflow inspect docs/a.parquet --json", "The same for programs."),
)


def inspect(
    path: Annotated[str, typer.Argument(help="A file, folder or glob.")],
    batch: Annotated[int, typer.Option(min=1, help="Rows of the batches whose padding is reported.")] = 256,
    kind: Kind = None,
    where: Where = None,
    untrusted: Annotated[bool, typer.Option("--untrusted", help="{parquet.untrusted}")] = False,
    json: AsJson = False,
) -> None:
    """Show what files hold: tensors, lengths, waste of padding.

    It reads all rows.
    """
    from seqflow import providers
    from seqflow.progress import over
    from seqflow.providers.opening import format_of
    from seqflow.report.survey import Survey

    import_kind(kind)
    format = format_of(path, kind, untrusted=True) if untrusted else None
    source = providers.open(path, kind=kind, where=where, format=format)
    with progress_line(show=not json):
        survey = Survey(batch)
        for block in over(source.blocks(), "blocks", lambda: source.num_blocks):
            survey.add(source.read(block))
    if json:
        print_json({"path": path, "inferred": source.inferred, **survey.summary()})
    else:
        if source.inferred:
            say(source.inferred)
        _print(survey.summary(), batch)


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
