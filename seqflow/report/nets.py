"""The part of a report about the tensors of a job: the nets as pictures, and a byte bound of each tensor."""

from collections.abc import Iterator, Mapping

from seqflow.byte_sizes import format_bytes
from seqflow.job.inference import JobSpecs
from seqflow.net import NetInference
from seqflow.net.picture import is_drawn_whole
from seqflow.report.page import Section, drawing, paragraph, section, table
from seqflow.tensor import TensorSpec


def sections_of_specs(found: JobSpecs) -> Iterator[Section]:
    """Yield the tensors of the source, of `prepare`, of the batches and of `net`."""
    yield section("Tensors of the source", _bounds(found.source))
    if found.prepare is not None:
        yield section("The net of prepare", *_net(found.prepare))
    yield section("Tensors of a batch", _bounds(found.batch))
    if found.net is not None:
        yield section("The net of batches", *_net(found.net))


def _bounds(specs: Mapping[str, TensorSpec]) -> str:
    rows = [(name, str(spec), format_bytes(spec.byte_bound)) for name, spec in specs.items()]
    return table(("tensor", "dtype and shape", "at most"), rows)


def _net(found: NetInference) -> Iterator[str]:
    net = found.net
    if is_drawn_whole(net):
        yield drawing(found.to_svg())
    given = [
        (name, "constant" if name in net.constants else "input") for name in (*net.inputs, *net.constants)
    ]
    made = [(name, str(step.value)) for step in net.steps for name in step.results if name != "_"]
    rows = [
        (
            "" if name.startswith("%") else name,
            str(found.specs[name]),
            format_bytes(found.byte_bounds[name]),
            by,
        )
        for name, by in (*given, *made)
    ]
    yield table(("tensor", "dtype and shape", "at most", "made by"), rows)
    most = found.byte_bound
    yield paragraph(
        "The bytes of all tensors together have no known bound."
        if most is None
        else f"All tensors together have at most {format_bytes(most)}."
    )
    if found.guards:
        yield table(("checked when it runs",), [(str(guard),) for guard in found.guards])
