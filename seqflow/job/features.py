"""Section [features]: settings of columns, as statements at the end of the `prepare` net."""

from collections.abc import Collection, Iterator, Mapping

from seqflow.errors import JobError, nearest
from seqflow.job.sections import FeatureSection
from seqflow.net import Net
from seqflow.signature import Described
from seqflow.tensor import TensorSpec


def constant_of(column: str) -> str:
    """Return the name of the constant that holds the vocabulary of a column."""
    return f"features.{column}"


def net_with_features(
    net: Net | None,
    features: Mapping[str, FeatureSection],
    specs: Mapping[str, TensorSpec],
    sizes: Mapping[str, int],
    coded: Collection[str],
) -> Net:
    """Return the `prepare` net with the ids of each column, `c_ids`, in place of its values.

    `specs` are the tensors that `net` gives, or those of the source without one; `sizes` the sizes of the
    vocabularies by column, and `coded` the tensors that hold codes of a dictionary. Raise JobError when there is no
    such column, or it has neither integers nor texts.
    """
    statements: list[str] = []
    used = set[str]()
    for column, feature in features.items():
        inputs = _inputs(column, specs, coded)
        statements += _statements(column, feature, inputs, sizes.get(column, 0))
        used.update(inputs)
    before = [] if net is None else [str(step.statement) for step in net.steps if not step.is_part]
    returned = [*(name for name in specs if name not in used), *map(_ids, features)]
    if (twice := next((name for name in map(_ids, features) if name in specs), None)) is not None:
        raise JobError(f"features: {twice!r} is a column already\n  rename it in [source]")
    text = "\n".join([*before, *statements, f"return {', '.join(returned)}"])
    return Net(text, folder=None if net is None else net.folder)


def _ids(column: str) -> str:
    return f"{column}_ids"


def _inputs(column: str, specs: Mapping[str, TensorSpec], coded: Collection[str]) -> tuple[str, ...]:
    """Return the values of a column, and for texts also their lengths."""
    name = column
    while name not in specs and f"{name}.lengths" in specs:
        name += ".values"
    place = f"features.{column}"
    if name not in specs:
        columns = list(dict.fromkeys(one.partition(".")[0] for one in specs))
        raise JobError(
            f"{place}: there is no column {column!r}{nearest(column, columns)}; there are {', '.join(columns)}"
        )
    spec = specs[name]
    if name in coded:
        raise JobError(
            f"{place}: {column} has codes of a dictionary, which differ from file to file, expected its values\n"
            f'  declare them: [source.schema] {column} = "string"'
        )
    if spec.dtype == "uint8" and isinstance(spec.rows, Described) and spec.rows.by in specs:
        return name, str(spec.rows.by)
    if spec.dtype.kind not in "iu":
        raise JobError(f"{place}: {column} is {spec.dtype}, expected integers or texts")
    return (name,)


def _statements(column: str, feature: FeatureSection, inputs: tuple[str, ...], size: int) -> Iterator[str]:
    """Yield the statements that give the ids of a column."""
    tensors, is_text = ", ".join(inputs), len(inputs) > 1
    hashed = (
        f"{'hash_strings' if is_text else 'hash_indices'}({tensors}, num_buckets={{}}, seed={feature.seed})"
    )
    encoded = f"{'encode_strings' if is_text else 'encode'}({tensors}, {constant_of(column)})"
    if feature.hash is not None:
        yield f"{_ids(column)} = {hashed.format(feature.hash)}"
    elif not feature.oov:
        yield f"{_ids(column)} = {encoded}"
    else:
        known = f"{_ids(column)}_known"
        yield f"{known} = {encoded}"
        yield f"{_ids(column)} = where({known} > 0, {known}, {size} + {hashed.format(feature.oov)})"
