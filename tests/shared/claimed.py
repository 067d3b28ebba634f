"""What claims speak of, as arrays: the rows of a claimed space are numbers that say which rows they are."""

import numpy as np

from seqflow.signature.language import AtLeast, Fresh, Given, Name, Rest, Sum


def rows_of(space, names):
    """The rows of a claimed space, or the value that a name stands for, for the inputs, attributes and bases `names`."""
    match space:
        case Name(name=name):
            return names[name]
        case Sum(of=name):
            lengths = names[name]
            return [spread(one) for one in lengths] if isinstance(lengths, list) else spread(lengths)
    args = [rows_of(one, names) for one in space.arguments]
    match space.op:
        case "select":
            rows, by = args
            return rows[by]
        case "sliced":
            rows, multiple = args
            return rows[: len(rows) // multiple * multiple]
        case "groups":
            ids, *given = args
            return np.arange(int(ids.max(initial=0)) + bool(len(ids)) if given in ([], [None]) else given[0])
        case "joined":
            (parts,) = args
            starts = np.cumsum([0, *map(len, parts)])
            return np.concatenate([part + start for part, start in zip(parts, starts, strict=False)])
    raise AssertionError(space)


def spread(lengths):
    """The rows that lengths describe, counted from 0."""
    return np.arange(int(np.sum(lengths, dtype=np.int64)))


def owners(lengths):
    """The sequence of each row."""
    return np.repeat(np.arange(len(lengths)), lengths.astype(np.int64))


def blocks(order, lengths):
    """Where each row comes from, when the sequences are put in this order."""
    sizes = lengths.astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    return np.concatenate([np.zeros(0, int), *(np.arange(starts[i], starts[i] + sizes[i]) for i in order)])


def size_name(dim):
    """The name that the size of an axis has in the signature."""
    match dim:
        case Name(name=name) | Fresh(name=name) | AtLeast(name=name) | Given(otherwise=Name(name=name)):
            return name
    return None


def name_axes(argument, array):
    """The axes of a tensor that have names: their number and name."""
    extra = array.ndim - len(argument.dims) if argument.rest is not None else 0
    for i, dim in enumerate(argument.dims):
        if not isinstance(dim, Rest):
            yield (i if argument.rest is None or i < argument.rest else i + extra), dim


def tensors_of(op, inputs):
    """All input tensors with their arguments, those of lists one by one."""
    for argument in op.signature.input_arguments:
        value = inputs.get(argument.name)
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                yield argument, np.asarray(one)


def bases_of(op, inputs):
    """The rows of each name that an axis 0 of the inputs has."""
    found = {}
    for argument, array in tensors_of(op, inputs):
        name = size_name(argument.dims[0]) if argument.dims else None
        if name is not None:
            found.setdefault(name, np.arange(len(array)))
    return found


def permuted(op, inputs, name, order):
    """The inputs with the rows of a name in another order, and with them the rows that they describe."""
    rows = {}

    def order_of(argument, array):
        match argument.dims[:1]:
            case (Sum(of=of),):
                return rows.get(of)
            case (dim,) if size_name(dim) == name:
                return order
        return None

    changed = dict(inputs)
    for _ in op.signature.input_arguments:  # outer lengths first, wherever they stand
        for argument, array in tensors_of(op, inputs):
            if argument.is_lengths and (moved := order_of(argument, array)) is not None:
                rows[argument.name] = blocks(moved, array)
    for argument in op.signature.input_arguments:
        value = inputs.get(argument.name)
        if isinstance(value, np.ndarray) and (moved := order_of(argument, value)) is not None:
            changed[argument.name] = value[moved]
    return changed
