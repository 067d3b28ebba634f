"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Kind = Annotated[
    str | None, typer.Option(help="parquet, arrow, libsvm or criteo, where the name does not say.")
]
JobInput = Annotated[list[str] | None, typer.Option(help="Of a job: read this instead; may be repeated.")]
JobSettings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Of a job: override a setting.")
]
