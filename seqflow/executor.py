"""Run the steps of a net on the tensors of a record, and check assumptions that inference could not prove."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from seqflow import kernels
from seqflow.arguments import checked
from seqflow.errors import LodError, OpError, OpTypeError, SeqflowError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.kernels.draws import Reseed, RowDraws, drawing
from seqflow.net import Net, NetInference, Step
from seqflow.net.step import compute, shown
from seqflow.net.syntax import Reference
from seqflow.record import Record
from seqflow.record.record import parents_by_name
from seqflow.shape import Atom, Dimension, Guard, PartialShape, SameLengths
from seqflow.signature import Described, OwnRows
from seqflow.signature.bind_arrays import as_array
from seqflow.tensor import TensorSpec

if TYPE_CHECKING:
    import pyarrow as pa

RowPath = Sequence[tuple[str, str]]
"""Steps that make rows from those of the record: "described" or "select", and the tensor that does it."""
UNKNOWN = object()
"""Marks a tensor with unknown row provenance, in place of its parent."""
PLAIN = object()
"""Marks a tensor whose axes are plain sizes, such as a weight, in place of its parent."""


@overload
def run(
    net: Net | str,
    tensors: Record,
    *,
    reseed: Reseed | RowDraws | None = None,
) -> Record: ...
@overload
def run(
    net: Net | str,
    tensors: Mapping[str, Any],
    *,
    reseed: Reseed | RowDraws | None = None,
) -> dict[str, Array]: ...
@checked(late=True)
def run(
    net: Net | str,
    tensors: Record | Mapping[str, Any],
    *,
    reseed: Reseed | RowDraws | None = None,
) -> Record | dict[str, Array]:
    """Run a net; return a record for a record, a dictionary for any other mapping of names to arrays.

    In a mapping, `x.lengths` describes `x.values`; instead of both, a list of lists or of texts may be given
    as `x`, at any depth (int64 if there are no values). One text is one row, as a list of this text. In the
    resulting record, the parent of an output is the returned lengths tensor that describes it; the rows of
    all other outputs are rows of the record.

    The steps run in topological order, and tensors are dropped after their last use. Equalities that
    inference assumed without proof are checked before the step that relies on them. An exception keeps its
    type and gets a note with the statement and the shapes of its inputs.

    Args:
        net: Net, or its text.
        tensors: Inputs of the net by name: a Record, or a mapping to arrays, lists of lists, or texts.
        reseed: Gives random ops a different seed, made from their own, and, as RowDraws, the same draws to a
            row in any batch.

    >>> run("total = lengths_sum(x.values, x.lengths)", {"x.values": [1, 2, 3], "x.lengths": [2, 0, 1]})
    {'total': array([3, 0, 3])}
    >>> run("total = lengths_sum(x.values, x.lengths)", {"x": [[1, 2], [], [3]]})
    {'total': array([3, 0, 3])}
    """
    net = Net(net) if isinstance(net, str) else net
    if isinstance(tensors, Record):
        plan, found = _execute(net, dict(tensors), _parents_of(tensors), reseed)
        return _as_record(net, found, plan, tensors)
    arrays: dict[str, Array] = {}
    for name, value in tensors.items():
        if isinstance(value, list | tuple | str) and (parts := _parts_of(net, name)):
            arrays |= flattened(name, [value] if isinstance(value, str) else value, parts)
        else:
            arrays[name] = as_array(name, value)
    parents = {name: UNKNOWN if by is None else by for name, by in parents_by_name(arrays).items()}
    return _execute(net, arrays, parents, reseed)[1]


def run_rest(
    net: Net, record: Record, done: Collection[int], reseed: Reseed | RowDraws | None = None
) -> Record:
    """Return the result of `run` for a record that has the results of the steps `done` already, by their names.

    Of a tensor that no other step reads, the record may hold only dtype and shape.
    """
    plan, found = _execute(net, {**record.tensors}, _parents_of(record), reseed, done=done)
    return _as_record(net, found, plan, record)


def _parts_of(net: Net, name: str) -> list[str]:
    """Return the inputs of a net that are lengths and values of a name; none if the name is an input itself."""
    return [] if name in net.inputs else [one for one in net.inputs if one.startswith(f"{name}.")]


def flattened(name: str, rows: Sequence[Any], parts: Sequence[str]) -> Iterator[tuple[str, Array]]:
    """Yield lengths and values of lists or texts, as deep as `parts` are; raise OpTypeError for other rows."""
    kinds, values = set(map(type, rows)), f"{name}.values"
    if not kinds <= {str} and not kinds <= {list, tuple, np.ndarray}:
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise OpTypeError(
            f"{name} has rows of {found}, expected only lists or only texts: the net takes {', '.join(parts)}"
        )
    if kinds == {str}:
        rows = [row.encode() for row in rows]
    yield f"{name}.lengths", np.fromiter(map(len, rows), np.int64, len(rows))
    if kinds == {str}:
        yield values, np.frombuffer(b"".join(rows), np.uint8)
        return
    items = list(chain.from_iterable(rows))
    if any(part.startswith(f"{values}.") for part in parts):
        yield from flattened(values, items, parts)
    else:
        yield values, as_array(values, items) if items else np.zeros(0, np.int64)


class SharedBy(NamedTuple):
    """In place of a parent: the tensor has an entry for each of the lists that rows share, by this index of rows."""

    row: str


def _parents_of(record: Record) -> Mapping[str, Any]:
    """Return the parents of a record's tensors, as `_structure` takes them."""
    if not record.shares:
        return record.parents
    return {**record.parents, **{name: SharedBy(index) for name, index in record.shares.items()}}


def _execute(
    net: Net,
    given: dict[str, Array],
    parents: Mapping[str, Any],
    reseed: Reseed | RowDraws | None,
    kept: Sequence[str] = (),
    done: Collection[int] = (),
) -> tuple[NetPlan, dict[str, Array]]:
    """Run the steps of a net; return its plan, its outputs, and the additional tensors in `kept`.

    The results of the steps `done` are among those given.
    """
    net.require(given)
    tensors = {**given, **net.constants}
    for name in (name for number in done for name in net.steps[number].results):
        given.pop(name, None)
    plan = _plan_for(net, given, parents)
    for number, (step, guards, dead) in enumerate(zip(net.steps, plan.guards, plan.dead, strict=True)):
        if number not in done:
            for guard in guards.before:
                check_guard(guard, step, tensors)
            values = _computed(step, tensors, reseed, plan.traced.get(number))
            _name_results(step, values, tensors)
        if kept:  # `dead` also has discarded results, which are all called "_"
            tensors.update(zip(step.names_at(number), values, strict=True))
        for guard in guards.after:
            check_guard(guard, step, tensors)
        for name in dead:
            if name not in kept:
                tensors.pop(name, None)
    return plan, {name: tensors[name] for name in (*plan.parents, *kept)}


def _computed(
    step: Step, tensors: Mapping[str, Array], reseed: Reseed | RowDraws | None, path: RowPath | None
) -> list[Array]:
    """Return the results of a step; a random op draws with the seed of the run, by row if `path` is known."""
    name = step.op.random
    if reseed is None or name is None or step.attributes[name] is None:
        return compute(step, tensors)
    keys = None
    if isinstance(reseed, RowDraws):
        keys = None if path is None else _keys_along(path, reseed.keys, tensors)
        reseed = reseed.by_batch if keys is None else reseed.by_row
    with drawing(keys):
        attributes = {**step.attributes, name: reseed(step.attributes[name])}
        return compute(replace(step, attributes=attributes), tensors)


def _keys_along(path: RowPath, keys: Array, tensors: Mapping[str, Array]) -> Array | None:
    """Return keys for rows that are made from the rows of the record; None if they are not made as inferred."""
    for kind, name in path:
        by = tensors[name]
        if by.ndim != 1 or (len(by) != len(keys) and (kind == "described" or by.dtype == np.bool_)):
            return None
        if kind == "described":
            keys = kernels.random_output(
                kernels.expand(keys, by), kernels.lengths_to_positions(by).view(np.uint64)
            )
            continue
        keys = keys[by]
        if by.dtype != np.bool_:  # a row that is taken again draws again
            order, counts = kernels.group_rows(*_numbered(by))
            again = np.empty(len(by), np.int64)
            again[order] = kernels.lengths_to_positions(counts)
            keys = np.where(again == 0, keys, kernels.random_output(keys, again.view(np.uint64)))
    return keys


def _numbered(by: Array) -> tuple[Array, int]:
    _, codes, counts = kernels.distinct_ids(by)
    return codes, len(counts)


def keeps_rows(net: Net, record: Record) -> bool:
    """Return whether row i of the net's result for such a record is known to be row i of the record."""
    return _plan_for(net, record, _parents_of(record)).keeps_rows


def row_numbers(net: Net, record: Record, reseed: Reseed | RowDraws | None = None) -> Array | None:
    """Return int64: the row of the record that each row of the net's result comes from; None if unknown.

    Rows are traced by inferred row terms, through masks and orders that select them, and through lists whose elements
    become rows. For that the net is run, and the tensors in these terms are kept.
    """
    own, inferred = _inferred(net, _structure(record, _parents_of(record), with_sizes=True))
    parents = inferred.parents(net.outputs(tuple(record)))
    first = next(
        (name for name, parent in parents.items() if parent is None and inferred.specs[name].rows), None
    )
    path = None if first is None else inferred.rows.path(first, own)
    if path is None:
        return None
    kept = [name for _, name in path]
    tensors = _execute(net, dict(record), record.parents, reseed, kept)[1]
    numbers = np.arange(record.num_rows)
    for kind, name in path:
        by = tensors[name]
        if by.ndim != 1 or (len(by) != len(numbers) and (kind == "described" or by.dtype == np.bool_)):
            return None
        numbers = np.repeat(numbers, by) if kind == "described" else numbers[by]
    return numbers if first is None or len(numbers) == len(tensors[first]) else None


def output_specs(net: Net, record: Record) -> Mapping[str, TensorSpec]:
    """Return dtype and shape of each of the net's outputs for records with tensors of these dtypes and ranks.

    Sizes of rows are unknown; sizes of other axes are known if the net or the record gives them.
    """
    return _plan_for(net, record, _parents_of(record)).outputs


def empty_result(net: Net, record: Record) -> Record:
    """Return the net's result for such a record, without rows: inferred, not run, since a net may need a row.

    Later axes of unknown size have size 0.
    """
    plan = _plan_for(net, record, _parents_of(record))
    tensors = {name: _without_rows(spec) for name, spec in plan.outputs.items()}
    return _as_record(net, tensors, plan, record)


def _without_rows(spec: TensorSpec) -> Array:
    sizes = [size.get_length() if size.is_static else 0 for size in spec.shape.dimensions or ()]
    return np.empty([0, *sizes[1:]] if sizes else (), spec.dtype)


class StepGuards(NamedTuple):
    """Equalities that a step relies on, checked as soon as both sides are known."""

    before: tuple[Guard | SameLengths, ...]
    """Guards on the inputs of the step."""
    after: tuple[Guard | SameLengths, ...]
    """Guards on its results."""


@dataclass(frozen=True, slots=True)
class NetPlan:
    """Execution plan of a net for one set of dtypes, ranks and parents."""

    guards: tuple[StepGuards, ...]
    """For each step, the sizes and the lengths that must be equal."""
    dead: tuple[tuple[str, ...], ...]
    """For each step, the tensors to drop after it."""
    parents: Mapping[str, str | None]
    """Parent of each output: the output lengths that describe its rows, or None."""
    keeps_rows: bool
    """Whether all other outputs have the rows of the record."""
    outputs: Mapping[str, TensorSpec]
    """Dtype and shape of each output."""
    own: OwnRows
    """Rows of the record."""
    traced: Mapping[int, RowPath]
    """For random steps by number, how the rows that they draw for are made from the rows of the record."""


Structure = tuple[tuple[str, np.dtype[Any], int, Any, tuple[int | None, ...]], ...]


def _plan_for(net: Net, tensors: Mapping[str, Array], parents: Mapping[str, Any]) -> NetPlan:
    """Return the plan for such tensors; if inference needs sizes, the plan for the sizes of these tensors."""
    plan = _plan_without_sizes(net, _structure(tensors, parents))
    return _plan(net, _structure(tensors, parents, with_sizes=True)) if plan is None else plan


@lru_cache(maxsize=128)
def _plan_without_sizes(net: Net, structure: Structure) -> NetPlan | None:
    """Return the plan for batches of all sizes; None if some op cannot be inferred without sizes."""
    try:
        return _plan(net, structure)
    except SeqflowError:
        return None


def step_guards(net: Net, structure: Structure) -> list[StepGuards]:
    """Return the guards of each step for tensors of this structure; raise the error of an op that cannot take them.

    A size of None is any size, and for tensors of UNKNOWN rows 2 or more.
    """
    inferred = _inferred(net, structure)[1]
    return [_to_check(step, found) for step, found in zip(net.steps, inferred.by_step, strict=True)]


def _structure(
    tensors: Mapping[str, Array], parents: Mapping[str, Any], with_sizes: bool = False
) -> Structure:
    """Return dtypes, ranks, parents and sizes: of rows with a parent each length, of other rows whether they are 0 or
    1.
    """
    return tuple([
        (name, array.dtype, array.ndim, parents[name],
         tuple([size if size < 2 or (i and with_sizes) else None for i, size in enumerate(array.shape)])
         if parents[name] is UNKNOWN else (None, *array.shape[1:])[:array.ndim])
        for name, array in tensors.items()
    ])  # fmt: skip


def _inferred(net: Net, structure: Structure) -> tuple[OwnRows, NetInference]:
    """Return the rows of the record, and the inferred results for tensors of this structure."""
    own = OwnRows("the record")
    shares = {parent.row: OwnRows(parent.row) for *_, parent, _ in structure if isinstance(parent, SharedBy)}
    specs = {}
    for name, dtype, rank, parent, known in structure:
        least = (
            2 if parent is UNKNOWN else 0
        )  # a size of 1 may be repeated to match others, so it is a case of its own
        sizes = [Dimension(least, None) if size is None else Dimension(size) for size in known]
        shape = PartialShape(sizes).named(name)
        if parent is PLAIN:
            specs[name] = TensorSpec(dtype, shape, axes=(None,))
        elif isinstance(parent, SharedBy):
            specs[name] = TensorSpec(dtype, shape, shares[parent.row])
        elif name in shares:
            specs[name] = TensorSpec(dtype, shape, own, points=shares[name])
        elif parent is None or parent is UNKNOWN:
            specs[name] = TensorSpec(dtype, shape, own if rank and parent is None else None)
        else:
            shape = PartialShape([Dimension.sum_of(parent), *shape.dimensions[1:]])  # type: ignore[index]
            specs[name] = TensorSpec(dtype, shape, Described(parent))
    return own, net.infer(specs)


@lru_cache(maxsize=128)
def _plan(net: Net, structure: Structure) -> NetPlan:
    own, inferred = _inferred(net, structure)
    outputs = net.outputs(tuple(name for name, *_ in structure))
    guards = [_to_check(step, found) for step, found in zip(net.steps, inferred.by_step, strict=True)]
    parents = inferred.parents(outputs)
    traced = dict(_random_paths(net, inferred, own))
    return NetPlan(
        tuple(guards),
        tuple(_last_uses(net, guards, outputs, traced)),
        parents,
        all(inferred.specs[name].rows == own for name, parent in parents.items() if parent is None),
        {name: inferred.specs[name] for name in outputs},
        own,
        traced,
    )


def _random_paths(net: Net, inferred: NetInference, own: OwnRows) -> Iterator[tuple[int, RowPath]]:
    for number, step in enumerate(net.steps):
        if step.op.random is None:
            continue
        by = step.inputs.get("lengths", next(iter(step.inputs.values())))
        path = inferred.rows.path(by.name, own) if isinstance(by, Reference) else None
        if path is not None:
            yield number, path


def _to_check(step: Step, guards: Iterable[Guard | SameLengths]) -> StepGuards:
    """Return the guards that the op does not check itself; it checks what its signature says."""
    found = [
        guard
        for guard in guards
        if step.op.shape is not None or isinstance(guard, SameLengths) or not guard.is_checked
    ]
    after = [guard for guard in found if not set(step.results).isdisjoint(guard.tensors())]
    return StepGuards(tuple(guard for guard in found if guard not in after), tuple(after))


def check_guard(guard: Guard | SameLengths, step: Step, tensors: Mapping[str, Array]) -> None:
    """Raise ShapeError when two known sizes differ, LodError when lengths do."""
    if isinstance(guard, SameLengths):
        _check_lengths(guard, step, tensors)
        return
    left, right = (_evaluated(side, tensors) for side in (guard.left, guard.right))
    if left is not None and right is not None and left != right:
        error = ShapeError(
            f"{step.op.name}: {guard.left} is {left} but {guard.right} is {right}, expected equal sizes "
            f"({guard.origin})"
        )
        step.name_in(error, {name: shown(tensors[name]) for name in step.uses})
        raise error


def _check_lengths(guard: SameLengths, step: Step, tensors: Mapping[str, Array]) -> None:
    left, right = tensors[guard.left], tensors[guard.right]
    if left.shape == right.shape and (left == right).all():
        return
    if left.shape == right.shape:
        i = int(np.argmax(left != right))
        found = f"{guard.left}[{i}] is {left[i]} but {guard.right}[{i}] is {right[i]}"
    else:
        found = f"{guard.left} has {len(left)} lengths but {guard.right} has {len(right)}"
    error = LodError(
        f"{step.op.name}: {found}, expected the same lengths: both describe the same rows ({guard.origin})"
    )
    step.name_in(error, {name: shown(tensors[name]) for name in step.uses})
    raise error


def _evaluated(side: Dimension | PartialShape, tensors: Mapping[str, Array]) -> object:
    """Return a size, or the sizes of a shape, of the tensors; None if one is unknown."""
    size_of = partial(_size_of, tensors=tensors)
    if isinstance(side, Dimension):
        return side.computed(size_of)
    if side.dimensions is None:
        return None
    found = tuple(dimension.computed(size_of) for dimension in side.dimensions)
    return None if None in found else found


_READ = {"sum": kernels.check_lengths, "max": kernels.max_length, "len": len}


def _size_of(atom: Atom, tensors: Mapping[str, Array]) -> int | None:
    """Return the size that an atom names, taken from its tensor."""
    tensor = None if atom.tensor is None else tensors.get(atom.tensor)
    if tensor is None:
        return None
    if atom.axis is not None:
        return int(tensor.shape[atom.axis])
    try:
        return int(_READ[atom.kind](tensor))
    except (kernels.KernelError, TypeError, ValueError):  # malformed lengths: the op itself raises the error
        return None


def _last_uses(
    net: Net, guards: Sequence[StepGuards], outputs: Iterable[str], traced: Mapping[int, RowPath]
) -> list[tuple[str, ...]]:
    kept = set(outputs)
    dead: list[tuple[str, ...]] = []
    for number, (step, of_step) in reversed([*enumerate(zip(net.steps, guards, strict=True))]):
        uses = [
            *step.uses,
            *(name for _, name in traced.get(number, ())),
            *(name for guard in (*of_step.before, *of_step.after) for name in guard.tensors()),
            *step.results,
        ]
        last = tuple(name for name in dict.fromkeys(uses) if name not in kept)
        kept.update(last)
        dead.append(last)
    return dead[::-1]


def _name_results(step: Step, values: list[Array], tensors: dict[str, Array]) -> None:
    if len(values) != len(step.results):
        raise OpError(
            f"{step.op.name}: the op gave {len(values)} tensors, expected {len(step.results)} "
            f"({', '.join(step.results)})"
        )
    tensors.update(zip(step.results, values, strict=True))


def _as_record(net: Net, tensors: dict[str, Array], plan: NetPlan, source: Record) -> Record:
    parents = plan.parents
    own = [name for name, parent in parents.items() if parent is None and tensors[name].ndim]
    # where rows share lists, the first tensor may have an entry for each list
    of_record = [name for name in own if source.shares and plan.outputs[name].rows == plan.own]
    rows = next((len(tensors[name]) for name in of_record or own), 0)
    shares = {
        name: index
        for name, index in source.shares.items()
        if {name, index} <= tensors.keys() and not {name, index} & {*net.assigned}
    }
    dictionaries = {
        name: known
        for name, known in source.dictionaries.items()
        if name in tensors and name not in net.assigned
    }
    schema = None if source.schema is None else _with_selected(net, source.schema)
    return Record(tensors, parents, rows, schema, dictionaries, shares=shares)


def _with_selected(net: Net, schema: pa.Schema) -> pa.Schema:
    """Return the schema without the columns whose names the net gives to other tensors, and with those of which it
    selects whole sequences: a selection of texts is text.
    """
    found = schema
    for name in net.assigned:
        if (at := found.get_field_index(name)) >= 0:
            found = found.remove(at)
    for step in net.steps:
        of = step.inputs.get("lengths")
        if not (step.op.selects_sequences and isinstance(of, Reference)):
            continue
        column, result = of.name.removesuffix(".lengths"), step.results[1].removesuffix(".lengths")
        is_whole = (str(step.inputs["data"]), step.results[0]) == (f"{column}.values", f"{result}.values")
        if is_whole and (at := schema.get_field_index(column)) >= 0 and found.get_field_index(result) < 0:
            found = found.append(schema.field(at).with_name(result))
            schema = found  # a selection may be selected from again
    return found
