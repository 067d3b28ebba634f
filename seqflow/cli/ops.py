"""`seqflow ops [NAME]`."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqflow.cli.job_options import AsJson
from seqflow.cli.printing import print_json, print_table, say

if TYPE_CHECKING:
    from seqflow.registry import OpDef

_HITS = 10


def ops(
    name: Annotated[str | None, typer.Argument(help="Show everything about this op.")] = None,
    search: Annotated[
        str | None, typer.Option(help='Find ops by purpose or name elsewhere: "ragged softmax".')
    ] = None,
    json: AsJson = False,
) -> None:
    """List the ops, find some, or show one.

    An op is shown with its signature, docs, attributes, errors, an example, and its origin.
    """
    from seqflow import registry
    from seqflow.errors import JobError, UnknownOpError

    if search is not None:
        _search(search, json)
        return
    if name is None:
        summaries = {op: registry.get(op).doc.split("\n")[0] for op in registry.names()}
        if json:
            print_json({"ops": summaries})
        else:
            print_table(summaries.items())
        return
    try:
        op = registry.get(name)
    except UnknownOpError as error:
        raise JobError(str(error)) from None
    if json:
        print_json(_described(op))
    else:
        _print(op)


def _search(query: str, json: bool) -> None:
    """Print the ops that a query may mean, best first; raise OpError when there is none."""
    from seqflow import registry
    from seqflow.errors import OpError
    from seqflow.names_elsewhere import found_anywhere
    from seqflow.registry.search import nearest, search

    shipped = [registry.get(name) for name in registry.names()]
    hits = search(query, shipped)[:_HITS]
    if known := [] if json else found_anywhere(query):
        say("\n".join(known))
        hits = [hit for hit in hits if hit.is_exact]
    if not hits and not known:
        near = nearest(query, shipped)
        hint = f"nearest: {', '.join(near)}; " if near else ""
        raise OpError(f"found no op for {query!r}\n  {hint}`seqflow ops` lists all")
    if json:
        print_json({"ops": [{"name": hit.name, "known as": hit.known_as} for hit in hits]})
        return
    rows = [(hit.name, registry.get(hit.name).doc.partition("\n")[0], hit.known_as) for hit in hits]
    if rows:
        print_table(rows, header=("op", "purpose", "known as"))


def _described(op: OpDef) -> dict[str, Any]:
    from seqflow.registry.description import describe

    found = describe(op)
    return {
        "name": op.name,
        "signature": str(op.signature),
        "attributes": {
            attribute.name: {
                "takes": attribute.expected,
                "required": attribute.required,
                **({} if attribute.required else {"default": attribute.default}),
            }
            for attribute in op.attributes
        },
        "doc": op.doc,
        "errors": [{"kind": kind, "when": when} for kind, when in found.errors],
        "example": found.example,
        "caffe2": op.caffe2,
    }


def _print(op: OpDef) -> None:
    from seqflow.registry.description import describe

    found = describe(op)
    say(f"{op.name}  {op.signature.in_lines()}\n\n{found.prose}")
    if op.attributes:
        say("\nattributes")
        print_table(
            (
                f"  {attribute.name}",
                attribute.expected,
                "required" if attribute.required else f"default {attribute.default!r}",
            )
            for attribute in op.attributes
        )
    if found.errors:
        say("\nerrors")
        print_table((f"  {kind}", when) for kind, when in found.errors)
    say(f"\nexample\n{indent(found.example, '  ')}")
    if found.origin:
        say(f"\nfrom Caffe2's {found.origin}")
