"""Names that people type first, and their names in seqflow.

One table for errors of missing attributes and options, and for `seqflow ops --search`. Names of ops elsewhere are in
the declarations of the ops (`known_as`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

C = TypeVar("C", bound=type)

TABLE: Mapping[str, Mapping[str, str]] = {
    "sf": {
        "sf.from_arrow(frame) takes frames of pandas and Polars": "from_pandas from_polars",
        "sf.Sequence(values, lengths)": "from_numpy array Tensor ragged RaggedTensor",
        "sf.Sequence.from_lists(lists)": "from_list from_lists",
        "sf.from_arrow(pa.table(columns)), with pyarrow as pa": "from_dict",
        "sf.from_arrow(pa.Table.from_pylist(rows)), with pyarrow as pa": "from_dicts from_pylist",
        "sf.from_arrow(table) makes one; its class is seqflow.record.Record": "Record Batch",
        "sf.open(path) makes one; its class is seqflow.providers.Provider": "Provider",
        "sf.open(path), and sf.Loader(path) for batches": "load read read_parquet load_dataset Dataset",
        "sf.Loader(source, batch=…)": "DataLoader",
        "sf.ops.tokenize(values, lengths, tokenizer), with the file tokenizer.json": "Tokenizer",
        "sf.Loader(source, pad=…), or batch=sf.Packed(capacity)": "collate DataCollator",
        "sf.ops.concat joins arrays, sf.ops.concat_sequences sequences": "concat stack",
        "seqflow.torch.ops are functions for modules of torch": "nn",
        "sf.ops.edit_distance, and `seqflow ops --search` for others": "metrics",
        "sf.op(signature) declares an op; docs/new-ops.md": "register register_op",
        "seqflow.job.Job and seqflow.job.run, or `seqflow run job.toml`": "Job run_job",
        "sf.to_arrow(record), written by pyarrow; a job writes files": "save export",
        "objects show themselves in Jupyter, sequence.to_svg() is a picture, `seqflow report` a page": "plot",
        "repr(object), or `seqflow inspect PATH`": "describe",
        "schema= of sf.open takes a pyarrow.Schema; sf.TensorSpec describes a tensor": "Schema",
    },
    "Sequence": {
        "len(sequence) counts sequences; sequence.values.shape is the shape of the rows": "shape",
        "sequence.values, or sequence.pad() with the mask": "to_numpy numpy",
        "sf.Sequence(torch.from_numpy(sequence.values), sequence.lod)": "to_torch to",
        "sf.Sequence(function(sequence.values), sequence.lod), or ops of seqflow.auto": "map apply",
        "sequence.to_svg(), and Jupyter shows it": "plot",
    },
    "Loader": {
        "loader.state_dict() is the position; a job writes batches (`seqflow run`)": "save",
        "next(iter(loader)) is the first batch, loader.batch_at(number) one by its number": "[]",
    },
    "Record": {"sf.to_arrow(batch)": "to_arrow to_pandas", "batch.num_rows": "shape"},
    "option": {
        "batch=n, or a plan such as TokenBudget(max_tokens) or Packed(capacity)": "batch_size",
        "threads=n; worker processes are not needed": "num_workers",
        "batch=Rows(n, drop_last=True)": "drop_last",
        "shuffle=Shuffle(seed)": "seed",
        "rank= and world_size=, and shuffle=": "sampler",
        "net=, or pad=": "collate_fn",
        "prepare= for rows, net= for batches": "transform",
        "memory=, in bytes": "prefetch_factor",
        "window=, in bytes": "buffer_size",
        "streams=n": "shards",
        "batch=Packed(capacity, balance=Balance(group, linear=…)), or balance= of another plan": "balance",
        'prepare="ids, n = tokenize(…, tokenizer)", constants={"tokenizer": "tokenizer.json"}': "tokenizer",
        "net= or prepare= with truncate(…, max_length=n), or batch=Packed(capacity)": "max_length",
        "tensor.to(device) moves the tensors of a batch": "device",
    },
}  # fmt: skip
"""For each place: advice, and the names that are typed for it."""
_INSTEAD = {
    (place, name): there
    for place, rows in TABLE.items()
    for there, names in rows.items()
    for name in names.split()
}


def instead(place: str, name: str) -> str:
    """Return the advice on a name that a place does not have; an empty string if the table has no such name."""
    return _INSTEAD.get((place, name), "")


def found_anywhere(name: str) -> list[str]:
    """Return the advice on a name, in the order of the places."""
    return [there for (_, known), there in _INSTEAD.items() if known.lower() == name.strip().lower()]


def no_attribute(what: str, name: str, advice: str) -> AttributeError:
    """Return the error of a missing attribute; Python adds no guesses of its own, because `obj` is set."""
    text = f"{what} has no attribute {name!r}"
    return AttributeError(f"{text}\n  {advice}" if advice else text, obj=what)


def explains_missing(place: str, otherwise: str = "", hidden: str = "") -> Callable[[C], C]:
    """Return a decorator of classes: a missing attribute names what is there, `dir` lists public names only.

    `otherwise` is the advice on names outside the table, a format with {name}; `hidden` has the names of attributes
    for other modules of seqflow, which `dir` omits.
    """

    def missing(self: object, name: str) -> NoReturn:
        advice = "" if name.startswith("_") else instead(place, name) or otherwise.format(name=name)
        raise no_attribute(f"{type(self).__name__!r} object", name, advice)

    def listed(self: object) -> list[str]:
        names = set(object.__dir__(self)) - {*hidden.split()}
        return sorted(name for name in names if not name.startswith("_"))

    def decorate(cls: C) -> C:
        # set here, not written in the class: a type checker would allow any name
        setattr(cls, "__getattr__", missing)  # noqa: B010
        setattr(cls, "__dir__", listed)  # noqa: B010
        return cls

    return decorate
