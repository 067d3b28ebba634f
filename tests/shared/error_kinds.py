"""The kinds of messages that errors have, each with a call that raises it: the table of docs/errors.md.

`python tests/shared/error_kinds.py` writes the page.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf
from seqflow import errors, ops
from seqflow.cli.build_vocabulary import build_vocabulary
from seqflow.errors import (
    BatchPlanError,
    DamagedFileError,
    ExpressionError,
    FilterError,
    GradientError,
    JobError,
    LodError,
    MissingSourceError,
    NetError,
    OpError,
    OpIndexError,
    OpMemoryError,
    OpResultError,
    OpTypeError,
    ProviderError,
    ProviderOptionError,
    ProviderTypeError,
    SeqflowError,
    ShapeError,
    StoreError,
    UnknownColumnError,
    UnknownOpError,
    WriteError,
)
from seqflow.job import Job, run
from seqflow.signature import Described, OwnRows

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


class Kind(NamedTuple):
    """A message as its first line reads, with … for what differs; what it means; what to do; a call that raises it."""

    message: str
    meaning: str
    advice: str
    call: Callable[[], object]

    def describes(self, error: BaseException) -> bool:
        """Whether the first line of an error is this message, between the names of ops and the signature."""
        first = str(error).partition("\n")[0]
        return (
            re.fullmatch(rf"(\w+: )*{re.escape(self.message).replace('…', '.+?')}( \(.*\))?", first)
            is not None
        )


X = np.arange(6.0)
N = np.array([2, 1, 3])
TABLE = pa.table({"tokens": [[1, 2, 3], [], [4]], "n": [1, 2, 3]})
TWO_LISTS = pa.table({"a": [[1]], "b": [[1]]})
A_NULL = pa.table({"a": [1, None]})
NO_STORE = {
    "aws_endpoint_url": "http://127.0.0.1:9", "aws_region": "us-east-1", "aws_access_key_id": "a",
    "aws_secret_access_key": "b", "retry_seconds": 0.1,
}  # fmt: skip
RECORD = OwnRows("the record")
SPECS = {
    "score": sf.TensorSpec("float32", "{rows:0..9}", RECORD),
    "doc.lengths": sf.TensorSpec("int64", "{rows:0..9}", RECORD),
    "doc.values": sf.TensorSpec("int64", "{sum(doc.lengths)}", Described("doc.lengths")),
    "tag.lengths": sf.TensorSpec("int64", "{rows:0..9}", RECORD),
    "tag.values": sf.TensorSpec("int64", "{sum(tag.lengths)}", Described("tag.lengths")),
}


def write_files(folder: Path) -> None:
    """What the calls read, in the current folder."""
    pq.write_table(TABLE, folder / "rows.parquet")
    (folder / "cut.parquet").write_bytes((folder / "rows.parquet").read_bytes()[:-20])
    damaged = bytearray((folder / "rows.parquet").read_bytes())
    damaged[4:40] = b"\xff" * 36
    (folder / "damaged.parquet").write_bytes(damaged)
    (folder / "broken.jsonl").write_text("{n: 1\n")
    (folder / "bad.jsonl").write_text('{"n": 1}\n{"n": "x"}\n')
    (folder / "note.xyz").write_text("x")


def infer(net: str) -> object:
    return sf.Net(net).infer(SPECS)


def job(text: str) -> Job:
    """A job of the rows, its file in the current folder."""
    path = Path("job.toml")
    path.write_text(f'[source]\npaths = "rows.parquet"\n{text}')
    return Job.read(path)


def batches(source: Any, **options: Any) -> object:
    return list(sf.Loader(source, **options))


def not_annotated(x: Any, *, k) -> object:  # type: ignore[no-untyped-def]
    return x


def declare(signature: str, function: Callable[..., Any], **options: Any) -> object:
    """Declare an op, call it, and forget it."""
    declared = sf.op(signature, **options)(function)
    try:
        return declared([1.0, 2.0])
    finally:
        sf.registry.unregister(function.__name__)


def first_only(x: Any) -> Any:
    return x[:1]


def interrupted() -> object:
    """A state of other batches."""
    return sf.Loader(TABLE, batch=2).load_state_dict(sf.Loader(TABLE, batch=1).state_dict())


def batches_of_mix() -> object:
    pq.write_table(pa.table({"n": ["a"]}), "other.parquet")
    return list(sf.Mix({"rows.parquet": 1, "other.parquet": 1}, batch=2))


def other_columns() -> object:
    pq.write_table(pa.table({"n": ["1"]}), "other.parquet")
    return sf.open(["rows.parquet", "other.parquet"])["n"]


def two_batches() -> object:
    from seqflow.torch import collate

    return collate([{}, {}])


def written_otherwise() -> object:
    run(job('[output]\npath = "out"'))
    return run(job('[batch]\nn = 1\n[output]\npath = "out"'))


def foreign_file() -> object:
    Path("out").mkdir()
    Path("out/mine.parquet").write_bytes(b"")
    return run(job('[output]\npath = "out"'))


KINDS: dict[type[Exception], list[Kind]] = {
    LodError: [
        Kind("sum(…) is … but … has … rows", "the lengths don't describe these values", "pass the lengths that were computed with the values: an op that changes one gives both", lambda: ops.lengths_sum(X, [2, 1])),
        Kind("…[…] = … is negative", "a length below 0", "look where the lengths come from: a difference of offsets, a subtraction", lambda: ops.lengths_sum(X, [7, -1])),
        Kind("sum(…) overflows int64 at …", "lengths that add up to more than any array has", "the lengths are damaged, or are something else", lambda: ops.lengths_sum(X, [2**62, 2**62])),
        Kind("…[…] = … is longer than …", "a sequence does not fit into the width that was asked for", "`truncate` first, or `truncate=True`, or a larger `max_length`", lambda: ops.pad(X, N, max_length=2)),
        Kind("…[…] is … but …[…] is …, expected no decrease", "offsets, or ids, that must be sorted are not", "sort rows and ids together, or take an op for unsorted ids (`unsorted_segment_sum`)", lambda: ops.offsets_to_lengths([0, 3, 2])),
        Kind("…[…] is … but …[…] is …, expected the same", "two lengths that a net declares equal differ in this batch", "the columns are not aligned row by row: repair the data, or drop the claim", lambda: sf.run("same_lengths(a, b)", {"a": [1, 2], "b": [1, 3]})),
        Kind("LoD: sum(lod[…]) is … but lod[…] has … lengths", "lengths of two levels that don't belong together", "outermost first: each level counts the sequences of the next", lambda: sf.LoD([2, 1], [1, 2])),
        Kind("Sequence: the lengths describe … rows but values has …", "values and lengths of different sizes", "see above", lambda: sf.Sequence(X, [[1, 2]])),
        Kind("… and … have different lengths: …", "`sf.auto`: two Sequences meet that differ in a length", "bring one to the lengths of the other: `expand`, `pad`, `truncate`", lambda: sf.auto.add(sf.Sequence(X, [N]), sf.Sequence(X, [[3, 1, 2]]))),
        Kind("… holds …, but …: values of one column, lengths of another", "before data: two columns are mixed, also where their sizes agree", "pass the column's own lengths; if they are equal, `same_lengths(a, b)` says so and is checked", lambda: infer("y = lengths_sum(doc.values, tag.lengths)")),
        Kind("… holds …, but …: one has a row for each sequence, the other the rows of all sequences", "a value for each sequence meets values of all their rows", "`expand(x, lengths)` first", lambda: infer("y = score * doc.values")),
        Kind("… holds …, but …: a selection of rows meets other rows", "one side was masked, sliced or sorted, the other was not", "select both by the same mask, or lengths with their rows (`mask_sequences`)", lambda: infer("v, _ = boolean_mask(doc.values, doc.values > 2)\ny = v * doc.values")),
        Kind("… holds …, but … holds …: positions inside sequences are not indices of rows", "a place inside a sequence is used as the number of a row", "`to_rows(positions, lengths)`, or `gather_within`", lambda: infer("y = gather(doc.values, argsort_within(doc.values, doc.lengths))")),
        Kind("… points at …, but … holds …: indices of some rows, used on others", "indices into one tensor are used on another", "gather from the rows that they point at", lambda: infer("u, i, c = unique(doc.values)\ny = gather(tag.values, i)")),
        Kind("… holds …, but …: padded for other lengths", "two padded tensors, or a mask, of two columns", "pad both for one column's lengths", lambda: infer("p, _ = pad(doc.values, doc.lengths)\nq, _ = pad(tag.values, tag.lengths)\ny = p * q")),
        Kind("… holds …, but … has 2 axes: rows do not broadcast", "`[B, 1]` meets `[B]`: NumPy would make `[B, B]`", "`expand_dims(x, axis=1)`", lambda: infer("y = expand_dims(score, axis=1) - score")),
        Kind("… is a plain size …, but … holds …: rows meet the same rows, or a size of 1", "a constant of as many entries as there happen to be rows", "`same_rows(a, b)` where it is one value for each row", lambda: sf.Net("y = score * t").bind(t=np.zeros(3)).infer(SPECS)),
        Kind("sequence … has … rows, expected a multiple of …", "`shard_sequences` of sequences that were not padded", "`Packed(…, multiple_of=…)`, or pad first", lambda: ops.shard_sequences(X[:5], [5], parts=2, part=0)),
        Kind("from_lists: at depth …, item … is … but item … is …", "lists of different depths", "each item at one depth is a list, or none is", lambda: sf.Sequence.from_lists([[1], [[2]]])),
        Kind("from_lists: the arrays do not fit together: …", "arrays with rows of other shapes, or dtypes that have none in common", "arrays of one dtype and row shape", lambda: sf.Sequence.from_lists([np.ones((1, 2)), [3]])),
    ],
    ShapeError: [
        Kind("… has … dimensions …, expected …", "an array with more or fewer axes than the signature has", "reshape it; lengths have one axis", lambda: ops.lengths_sum(X, [[6]])),
        Kind("… is …, expected … as in …", "two sizes that have one name in the signature differ", "look at both shapes: often one is transposed, or of another layer", lambda: ops.fc(np.ones((2, 3)), np.ones((4, 5)))),
        Kind("… is …, expected … (… is …, … is … as in …)", "a size is not the multiple, or not the sum, that the signature declares", "as above; the brackets show the origin of the numbers", lambda: ops.gru(np.ones((6, 3)), N, np.ones((7, 3)), np.ones((6, 2)))),
        Kind("… is …, expected … or more (… is …)", "an axis that is too short for the longest sequence, or for another size", "pad wider, or truncate", lambda: ops.unpad(np.ones((2, 3)), [2, 4])),
        Kind("x … has … elements, shape … has …", "`reshape` to another number of elements", "one size may be -1", lambda: ops.reshape(X, shape=[4])),
        Kind("…: dimension … is … in … but … in …", "two known shapes that differ", "as the shapes say", lambda: sf.PartialShape([2, 3]).merge(sf.PartialShape([2, 4]))),
        Kind("dimension: … is dynamic, expected a static size", "`int` of a size that is not known yet", "`dim.is_static`, or its bounds", lambda: int(sf.Dimension.dynamic())),
        Kind("shape text, column …: found …, expected …", "text that is not a shape", "`{1,?,2..5}`: a size, an unknown one, one between bounds", lambda: sf.Dimension.parse("x y")),
        Kind("view: … elements of shape … cannot be viewed as …", "the new shape needs a copy, or another number of elements", "`reshape`", lambda: sf.tensor.view(np.ones((2, 3)), (4,))),
        Kind("x … has … elements, no multiple of the … of shape …", "the other sizes of the shape do not divide the number of elements, so -1 has no value", "give a shape that fits", lambda: ops.reshape(X, shape=[-1, 4])),
        Kind("dimension: … is not a size, expected …", "a size that is negative or not a number", "0 or more", lambda: sf.Dimension(-1)),
        Kind("shape: … has no dimension …, expected one of its …", "an axis number that is not below the rank", "count from 0", lambda: sf.PartialShape([2, 3])[5]),
    ],
    OpError: [
        Kind("from_lists: … is …, which is not a value of …", "a value that the dtype cannot hold: too large, or with a fraction", "a wider dtype, or round it before", lambda: sf.Sequence.from_lists([[300]], "uint8")),
        Kind("… is …, expected …", "an attribute out of its range", "`seqflow ops NAME` lists what attributes take", lambda: ops.truncate(X, N, max_length=-1)),
        Kind("… is …, which … cannot hold", "a fill, token or limit does not fit the dtype of the data", "cast the data first, or take another value", lambda: ops.lengths_max(np.array([1], np.int8), [1], empty=300)),
        Kind("…[…] = … is below …[…] = …, expected no decrease", "segment ids, or boundaries, that are not sorted", "sort them, or take an op for unsorted ids", lambda: ops.segment_ids_to_lengths([1, 0, 2])),
        Kind("… has …, … has …, expected lists of one or more, all equally long", "a list of tensors and one of lengths differ in length", "one lengths tensor for each tensor", lambda: ops.concat_sequences([X], [N, N])),
        Kind("… is …, the same axis as …", "an axis is named twice", "each axis once", lambda: ops.transpose(np.ones((2, 3)), perm=[0, 0])),
        Kind("tokenizer is …: …", "the tokenizer's file is missing or no `tokenizer.json`", "a path from the current folder, or from the job; `seqflow train-tokenizer` makes one", lambda: ops.tokenize(np.zeros(1, np.uint8), [1], tokenizer="no.json")),
        Kind("signature, column …: found …, expected …", "a signature of your own is malformed", "[signatures](signatures.md)", lambda: declare("x[N] y[N] -> z[N]", first_only)),
        Kind("the function takes …, its signature says …", "parameters and signature of your own op differ", "positional parameters are the inputs, in order", lambda: declare("y[N] -> z[N]", first_only)),
        Kind("an op of that name is registered already", "`@sf.op` twice under one name", "`sf.registry.unregister(name)`, or another name", lambda: sf.op("x[N] -> y[N]")(ops.unique)),
        Kind("Ranks: … is given without …, and the environment has no …", "half a description of ranks", "`rank=` and `world_size=`, or both from the launcher", lambda: sf.Loader(TABLE, rank=0)),
        Kind("load_state_dict: … was … and is … now", "the state is of a loader with other settings, nets or constants", "go back to them, or [accept the change](loader.md#resume)", interrupted),
        Kind("load_state_dict: the data have changed: …", "files have changed or are missing since the state was saved", "restore them; for added files, [accept the change](loader.md#resume)", lambda: sf.Loader(TABLE).load_state_dict(sf.Loader(pa.table({"n": [1]})).state_dict())),
        Kind("load_state_dict: this is not the state of …, expected what state_dict() gave", "another dict", "the state that the loader returned, as JSON or not", lambda: sf.Loader(TABLE).load_state_dict({})),
        Kind("sequence … has … placeholders, expected …, …", "a text and its images do not belong together, or a text was cut and its images were not", "expand the placeholders of the whole text by the sizes of its images; cut between images", lambda: ops.expand_placeholders([9, 9], [1], [1], [2], placeholder=9)),
        Kind("image …, of sequence …, has … tokens from position …, expected a span inside the … tokens of the sequence", "a grid larger than its placeholders, or starts of other texts", "`image_spans` of the same texts", lambda: ops.image_ids([1], [3], [1], [2])),
        Kind("image … has … pixels, expected … x … as in sizes[…]", "sizes and pixels do not belong together, or width and height are exchanged", "sizes are height, width", lambda: ops.patchify(np.zeros((8, 3), np.uint8), [[4, 4]], [8], patch=2)),
        Kind("shapes … and … do not broadcast", "elementwise on arrays of different sizes", "sizes are equal, or 1", lambda: ops.add(np.ones(2), np.ones(3))),
        Kind("signature: sum or max of …, which it does not name", "a signature of your own speaks of lengths that it does not take", "name the lengths among the inputs", lambda: declare("x[N], y[sum(z)] -> w[N]", first_only)),
        Kind("Loader: … has …, but rows are shuffled in windows of …", "a block that is larger than the window", "raise `window=`, or make blocks smaller as the second line says", lambda: batches(pa.table({"x": np.arange(100_000)}), shuffle=True, window="1 KiB")),
        Kind("Loader: streams = … needs as many windows, but the data are …", "more streams than windows", "fewer streams, or a smaller `window`", lambda: batches("rows.parquet", streams=4)),
        Kind("Loader: steps_of is …, which totals= or a balance needs, and there are none", "a step is described but not used", "leave it out", lambda: sf.Loader(TABLE, steps_of=2)),
        Kind("Loader: totals with tail='repeat', whose batches count twice, expected 'drop' or 'pad'", "totals would be wrong", '`tail="drop"` or `"pad"`', lambda: sf.Loader(TABLE, totals={"t": "n"}, tail="repeat")),
        Kind("Loader: window: size is …, expected bytes as a number or text such as '32 MiB'", "no size", "a number of bytes, or text with a unit", lambda: sf.Loader(TABLE, window="5 apples")),
        Kind("…: … is …, expected one truth value for each of … rows", "a condition (`keep=`, `require=`) that is not a comparison of rows", "`n > 0`, `lengths_any(…, lengths)`", lambda: batches(TABLE, require="n")),
        Kind("Mix: … is … in batches of source …, and … in those of source 0", "sources with different columns or types", "`prepare`, `columns` and `rename` make them alike", lambda: batches_of_mix()),
        Kind("seqflow.torch.collate: found … batches, expected 1: whole batches are not stacked", "a DataLoader or Trainer with a batch size", "`batch_size=None`, 1 in a Trainer: the loader says what a batch is", lambda: two_batches()),
    ],
    OpTypeError: [
        Kind("there is no argument …, expected …", "an argument that the op does not have", "`seqflow ops NAME` lists them", lambda: ops.truncate(X, N, max_len=2)),
        Kind("…: … is missing", "an input or attribute of an op was not given", "`seqflow ops NAME`; for a Sequence the op of `seqflow.auto`", lambda: ops.truncate(X, N)),
        Kind("…: found … inputs, expected …", "an attribute of an op was given by position", "the second line has the keywords", lambda: ops.truncate(X, N, 2)),
        Kind("… has no option …", "an argument that the method does not have", "the second line, or `help`", lambda: sf.Loader(TABLE).to("torch", device="cpu")),
        Kind("Loader: tail is …, expected …", "another word for what becomes of the last round", '`"drop"`, `"pad"` or `"repeat"`', lambda: sf.Loader(TABLE, tail="cut")),
        Kind("op: the function is …, expected one with a name, which is the name of the op", "`@sf.op` on a lambda, or on an object", "`@sf.op(…)` above a function: `def doubled(x): …`", lambda: sf.op("x[N] -> y[N]")(lambda x: x)),
        Kind("the attribute … has no annotation, expected what it takes", "a keyword-only parameter of your own op without a type", "`k: int`, `float`, `bool`, `str`, `Literal[…]`, or `Any`", lambda: sf.op("x[N] -> y[N]")(not_annotated)),
        Kind("… is …, expected …", "an input of a dtype, or an argument of a type, that the op does not take", "`cast(x, dtype=…)`, or `x.astype(…)`", lambda: ops.lengths_sum(X, [2.0, 4.0])),
        Kind("… is … but … is …, expected one dtype for both", "two inputs that must be alike are not", "cast one; the second line names a cast without loss", lambda: ops.lstm(np.ones((6, 3), "f4"), N, np.ones((8, 3)), np.ones((8, 2)))),
        Kind("… is not rectangular: …", "a list of lists of different lengths in place of an array", "flat values and lengths: `sf.Sequence.from_lists(lists).unpack()`", lambda: ops.lengths_sum([[1], [1, 2]], [2])),
        Kind("… holds Python objects, expected an array of one dtype", "an array of dtype object: often one with None in it", "make it from numbers, or read the column with `sf.from_arrow`", lambda: ops.lengths_sum(np.array([1, None]), [2])),
        Kind("batch is …, expected a number of rows, …", "no plan of batches", "`batch=32`, or one of the plans", lambda: sf.Loader(TABLE, batch="2")),
        Kind("… has no option … (did you mean …?); it has …", "an option of a loader or a plan that is misspelt", "take the name that it suggests", lambda: sf.Loader(TABLE, shufle=True)),
        Kind("… is a masked array, expected a plain one", "`numpy.ma`", "fill it, or pass data and mask apart", lambda: ops.lengths_sum(np.ma.masked_array([1, 2], [0, 1]), [2])),
        Kind("np.… does not take a Sequence: its lengths would be lost", "a function of NumPy is given a Sequence", "`sequence.values`, or an op of `seqflow.auto`", lambda: np.asarray(sf.Sequence([1, 2], [2]))),
        Kind("… has …, which becomes … in an array of …", "a list of unlike values, which NumPy would give one dtype", "values of one kind, or an array of the dtype that you mean", lambda: ops.lengths_sum([2**53 + 1, 0.5], [2])),
        Kind("… returned …, expected a mapping of names to arrays", "a Python function as `net` or `prepare` gives something else", "a dict of arrays, or a record", lambda: batches(TABLE, net=lambda record: 3)),
        Kind("… returned … as …, expected a NumPy array", "the dict has a list, tensor or number", "`np.asarray(…)`", lambda: batches(TABLE, net=lambda record: {"x": [1, 2]})),
    ],
    OpIndexError: [
        Kind("…[…] = … is outside [0, …)", "an index outside the rows that it points into", "ids above the table: hash them (`hash_indices`), or a larger table; -1 only where an op says so", lambda: ops.gather(X, [0, 9])),
        Kind("… is …, expected 0 to …, the rows of batch …", "`trace` of a row that the batch has not", "count from 0", lambda: sf.Loader(TABLE, batch=2).trace(0, row=7)),
        Kind("positions[…] = … is outside [0, …), the rows of sequence …", "a position outside of its sequence", "positions count from 0 in each sequence", lambda: ops.to_rows([5], [2])),
    ],
    OpMemoryError: [Kind("the result needs …", "a result larger than memory, or than any array", "look at the size it names: one very long row decides how wide `pad` is", lambda: ops.pad(X, N, max_length=2**62))],
    OpResultError: [
        Kind("the result is not what the signature declares: …", "your op has returned another shape, dtype or value than its signature declares", "correct one of the two", lambda: declare("x[N] -> y[N]", first_only)),
    ],
    UnknownOpError: [
        Kind("no op is named … (did you mean …?)", "there is no such op; nets raise a NetError", "`seqflow ops --search WORDS` finds ops by purpose", lambda: sf.registry.get("truncat")),
    ],
    ExpressionError: [
        Kind("expression, column …: found …, expected …", "malformed arithmetic; the caret says where", "[expressions](nets.md#expressions): `&` for `and`, `where(c, x, y)` for `x if c else y`", lambda: sf.Expression("a +* b")),
        Kind("expression, column …: no function is named … (did you mean …?)", "there is no such function", "[the functions](ops/functions.md)", lambda: sf.Expression("sqr(x)")),
        Kind("expression, column …: … takes …, found …", "too many or too few arguments", "give as many as its form in the message has", lambda: sf.Expression("sqrt(a, b)")),
        Kind("expression: no value for …; its operands are …", "an operand was not given", "pass it by name", lambda: sf.Expression("x + y")(x=X)),
        Kind("expression: no operand is named …, expected …", "a name that the text does not have", "pass the names that it lists", lambda: sf.Expression("x + y")(x=X, z=X)),
        Kind("expression: the shapes of its inputs do not broadcast: …", "operands of different sizes", "sizes are equal, or 1", lambda: sf.Expression("x + y")(x=X, y=np.ones(4))),
        Kind("expression, column …: found … after another comparison, expected an operator that is none", "`a < b < c`", "`a < b and b < c`", lambda: sf.Expression("a < b < c")),
    ],
    NetError: [
        Kind("net, line …, column …: found …, expected …", "malformed text; the caret shows the place", "[nets](nets.md) are not Python", lambda: sf.Net("x = pad(a b)")),
        Kind("net, line …, column …: no op is named … (did you mean …?)", "there is no such op", "`seqflow ops --search WORDS`; ops of your own are imported first", lambda: sf.Net("x = padd(a, b)")),
        Kind("net, line …, column …: … takes no … (did you mean …?)", "an attribute that the op does not have", "the message ends with the signature", lambda: sf.Net("x = pad(a, b, max_len=3)")),
        Kind("net, line …, column …: … needs …", "an input or attribute is missing", "see above", lambda: sf.Net("x = pad(a)")),
        Kind("net, line …, column …: … is assigned already, in line …", "a name is assigned twice", "names are assigned once: take another", lambda: sf.Net("y = a + 1\ny = a + 2")),
        Kind("net, line …, column …: … needs its own result …", "statements that need each other", "break the circle", lambda: sf.Net("y = z + 1\nz = y + 1")),
        Kind("net, line …, column …: nothing assigns …, and it is not given", "a name that is neither a tensor of the batch, a constant nor a result", "list columns are `c.values` and `c.lengths`; the second line lists the given names", lambda: sf.run("y = a + 1\nreturn y", {"b": X})),
        Kind("net: nothing uses the constant …", "a constant of another name than the net has", "bind a name that the net reads: `net.inputs`", lambda: sf.Net("y = a + 1").bind(b=X)),
    ],
    GradientError: [
        Kind("it has no derivative: …", "a gradient would pass an op that has none", "`stop_gradient(x)` before it, or another op; [why](nets.md#gradients)", lambda: sf.Net("u, i, c = unique(x)\nl = reduce_sum(u)").gradient("l", ["x"])),
        Kind("gradient: the net has no tensor …", "`wrt` or the loss names no tensor", "an input, a constant or a result of the net", lambda: sf.Net("l = reduce_sum(x)").gradient("l", ["z"])),
        Kind("gradient: … does not depend on …, or only through integers and conditions", "nothing floats from one to the other", "look which path was meant", lambda: sf.Net("l = reduce_sum(x)\nm = z * 2").gradient("l", ["z"])),
        Kind("the derivative by … does not infer: …", "a formula of your own op is wrong", "[its derivative](signatures.md#write-an-op)", lambda: declare("float x[N] -> y[N]", first_only, grad={"x": "nothing(d.y)"})),
    ],
    DamagedFileError: [
        Kind("… is not a Parquet file, or damaged: …", "a file that is cut, or another format; other formats have similar messages", "copy it again; `bad_files=\"skip\"` leaves it out; `kind=` sets the format", lambda: sf.open("cut.parquet")["n"]),
        Kind("…, row group … can't be read: …", "a file of which a part is damaged", "copy it again; `bad_files=\"skip\"` leaves out the block, and counts it", lambda: sf.open("damaged.parquet")["tokens"]),
        Kind("… files are damaged, and bad_files allows max=…:", "more damaged files than the policy allows", "look at them; `sf.BadFiles(\"skip\", max=…)` allows more", lambda: sf.open(["cut.parquet", "rows.parquet"], bad_files=sf.BadFiles("skip", max=0))),
        Kind("…, line …: the schema can't be inferred: …", "a file of lines of which none can be read", "copy it again; `schema=` declares types ([files of lines](lines.md#files-of-lines)); `bad_files=\"skip\"` leaves out such files among others", lambda: sf.open("broken.jsonl")),
    ],
    ProviderError: [
        Kind("…, row …: null value in …", "a null, and nothing says what it is", "`fill=` replaces nulls, `valid=True` gives masks ([nulls](bad-rows.md#nulls))", lambda: sf.from_arrow(A_NULL)),
        Kind("…, block …, row …, column …: …", "a row that cannot be used: null, too long, malformed, refused by a net", '`bad_rows="skip"` or `sf.BadRows("quarantine", path)` ([bad rows](bad-rows.md#bad-rows))', lambda: batches(TABLE, batch=sf.TokenBudget(2))),
        Kind("…, line …, column …: …", "a line of a text file that does not have the type of its column", "mend the line, the `schema=`, or make it a bad row", lambda: sf.open("bad.jsonl", format=sf.JsonLines(schema={"n": "int64"}))["n"]),
        Kind("column … has a dot in its name, which tensor names use for nesting", "a name that another column's tensors have, or may have", '`rename={"a.b": "a_b"}`', lambda: sf.from_arrow(pa.table({"x": [[1]], "x.values": [1]}))),
        Kind("expected a record batch, a table or another holder of Arrow columns, not …", "`from_arrow` of a list or another object", "`pa.table({…})`, or `sf.Sequence.from_lists`", lambda: sf.from_arrow([1])),
        Kind("the function … gives no rows, so that its columns are not known", "a stream without a batch", "pass `schema=`", lambda: sf.open(lambda: iter([]))["x"]),
        Kind("column … is … in …, but … in …: …", "files of one source with types that none holds without loss", "`schema={…}` as the message says, or `exclude=`", lambda: other_columns()),
        Kind("two columns are called …", "a source has the name twice, or `rename` gives one that is taken", "another name", lambda: sf.open("rows.parquet", rename={"tokens": "n"})),
        Kind("the arrays don't have equally many rows: …", "a dict of arrays of different lengths", "lists of a row each: `pa.array([[1, 2], []])`", lambda: sf.open({"a": [1], "b": [1, 2]})),
        Kind("…, column …, row …: found …, expected …: …", "a Python value that does not fit the type of its column, which comes from the first 1,000 rows", "`schema=`, or convert the value", lambda: sf.open([{"x": 1}, {"x": 300}], schema=pa.schema({"x": pa.uint8()}))),
        Kind("column …: … has type …, which has no tensor form", "a type without numbers: decimal, null, union, interval, a struct without fields", "cast the column, or leave it out with `columns=`", lambda: sf.from_arrow(pa.table({"x": pa.array([None])}))),
        Kind("the list of sources is empty", "no files", "a pattern that finds some", lambda: sf.open([])),
        Kind("bad_rows: … of … are bad, expected at most …", "more rows are bad than `max` or `max_share` of `BadRows` allow", "mend the rows, or a higher bound", lambda: batches("bad.jsonl", format=sf.JsonLines(schema=pa.schema([("m", pa.int64())])), bad_rows=sf.BadRows("skip", max=0))),
        Kind("bad_rows: 'skip' leaves out all … rows of a source, the first: …", "no row of a source can be used: another `schema=`, a format that is not that of the file", "look at the first; `bad_rows=\"raise\"` stops at it", lambda: batches("bad.jsonl", format=sf.JsonLines(schema=pa.schema([("m", pa.int64())])), bad_rows="skip")),
    ],
    StoreError: [
        Kind("…: no answer in … s, after … attempts; the last: …", "a store, or the network, that is away for longer than requests are repeated", "`storage_options={\"retry_seconds\": …}` waits longer ([stores](stores.md))", lambda: sf.open("s3://bucket/a.parquet", storage_options=NO_STORE)),
    ],
    MissingSourceError: [
        Kind("… does not exist (did you mean …?)", "no such path", "paths are from the current folder, in a job from its file", lambda: sf.open("row.parquet")),
        Kind("no files in …", "a pattern or folder without files that are read", "quote the pattern for the shell; hidden files are left out", lambda: sf.open("nothing/*.parquet")),
    ],
    ProviderOptionError: [
        Kind("… has the suffix …, which is not known, expected …", "the content is not used to guess the format", "`kind=`, or pass the data as an Arrow table or stream", lambda: sf.open("note.xyz")),
        Kind("kind is … (did you mean …?), but must be one of …", "no such kind of source", 'one of those; [a kind of your own](extending.md#a-source) is `"module:function"`', lambda: sf.open("rows.parquet", kind="csvv")),
        Kind("open has no option … for …; …", "an option that this kind of source does not have", "[sources](sources.md)", lambda: sf.open(TABLE, format=sf.Csv())),
        Kind("… is an option of …, and … is …", "an option of another format", "[the options of each format](job-keys.md#source)", lambda: sf.open("rows.parquet", documents=True)),
        Kind("… belongs to kind …, but kind is …", "options of a format, and another kind", "leave one of the two out", lambda: sf.open("rows.parquet", kind="parquet", format=sf.JsonLines())),
        Kind("format is …, and … is …", "the options of another format", "those of the format that the file has, or `kind=` as well", lambda: sf.open("rows.parquet", format=sf.Csv())),
        Kind("… is an option of …", "an option of a format as a keyword", "write it into `format=`", lambda: sf.open("rows.parquet", format=sf.Parquet(), use_threads=True)),
        Kind("columns must be a list of names, not the string …", "one name in place of a list", '`columns=["tokens"]`', lambda: sf.open("rows.parquet", columns="tokens")),
        Kind("kind: there is no module …", "the module of your own source is not found", "install it, or put it into the folder of the job", lambda: sf.open("rows.parquet", kind="no_such_module:f")),
        Kind("options are passed to the function of a kind: kind='module:function'", "`options=` without a kind of your own", "arguments of `open` itself", lambda: sf.open("rows.parquet", options={"a": 1})),
    ],
    FilterError: [
        Kind("where, column …: found …, expected …", "a malformed condition; the caret says where", "[filters](filters.md#filters)", lambda: sf.open("rows.parquet", where="n >")["n"]),
        Kind("where, column …: … is …, which is not compared", "a list or struct in a comparison", "compare its lengths: `tokens.lengths > 30`", lambda: sf.open("rows.parquet", where="tokens > 2")["n"]),
        Kind("where, column …: … is …, expected integers or texts to hash", "`hash` of floats, bools or times", "hash an id", lambda: sf.open("rows.parquet", where="hash(n / 2) > 2")["n"]),
        Kind("where is …, expected text, such as …", "something that is not a condition", "text, as [filters](filters.md#filters) have it", lambda: sf.open("rows.parquet", where=3)["n"]),
    ],
    ProviderTypeError: [Kind("to_arrow: found …, expected a record or a Sequence", "arrays alone do not say what describes what", "`sf.Sequence(values, [lengths])`, or the record that `sf.run` gives", lambda: sf.to_arrow(3))],
    UnknownColumnError: [
        Kind("…: there is no column … (did you mean …?); there are …", "`columns=` names an unknown column", "one of those; fields are `column.field`", lambda: sf.open("rows.parquet", columns=["token"])),
        Kind("where: there is no column …; there are …", "a condition names an unknown column", "the names are those before `rename`", lambda: sf.open("rows.parquet", where="m > 2")["n"]),
        Kind("the record has no tensor … (did you mean …?); it has …", "a list column is two tensors, none of its own name", '`batch["tokens.values"]` and `batch["tokens.lengths"]`; `sf.open(path)["tokens"]` is the Sequence', lambda: sf.from_arrow(TABLE)["token.values"]),
        Kind("pad: there is no list column …; there are …", "`pad=` names an unknown column", "one of the columns that it lists", lambda: batches(TABLE, pad={"m": sf.Pad()})),
        Kind("the record has no map …", "`sf.features` of a column that is not a map", "a column of type map; [sparse features](sparse-features.md)", lambda: sf.features(sf.from_arrow(TABLE), "tokens", ["a"])),
        Kind("fill: there is no column …", "`fill=` names an unknown column", "columns, fields and levels as in the schema", lambda: sf.open("rows.parquet", fill={"m": 0})),
        Kind("arrow_function: the net reads …, and the table has no such column; it has …", "a net of another table", "a column of the table: `c.values`, `c.lengths`", lambda: sf.arrow_function("y = z + 1")(TABLE)),
    ],
    BatchPlanError: [
        Kind("…: there is not just one list column of numbers; name its lengths with lengths=", "batches are planned on lengths, and there are several", '`lengths="tokens.lengths"`, or `columns=` of the loader', lambda: batches(TWO_LISTS, batch=sf.TokenBudget(4))),
        Kind("…: the list column … is neither cut nor left out", "a second list column would not be packed with the first", "name it in `columns` of the plan, or don't read it", lambda: batches(TWO_LISTS, batch=sf.Packed(4, ("a",)))),
        Kind("…: columns has …, which is not a list column", "a plan cuts list columns only", "leave it out of `columns`: it comes once for each piece", lambda: batches(TABLE, batch=sf.Packed(4, ("tokens", "n")))),
        Kind("pad: … has one entry a row, expected a list column of numbers", "`pad=` names a plain column", "leave it out of `pad`", lambda: batches(TABLE, pad={"n": sf.Pad()})),
        Kind("Loader: an epoch has fewer batches than world_size = …, and tail='drop' leaves none", "too few batches for so many ranks", '`tail="pad"` or `"repeat"`, or smaller batches', lambda: batches(TABLE, batch=2, rank=0, world_size=4)),
        Kind("totals: … names …, which the records have not", "a total of a tensor that batches don't have", "the second line says what they have", lambda: batches(TABLE, batch=2, totals={"t": "labels != 0"})),
        Kind("totals: … is about … for one element, which … cannot hold", "a product of integers beyond 64 bits", "multiply by 1.0 to count in float64", lambda: batches({"n": np.array([2**40])}, batch=1, totals={"t": "n * n"})),
    ],
    WriteError: [
        Kind("cannot write …: …", "the disk is full, or the folder is missing or takes no files", "room, or another path; nothing of the file is left", lambda: sf.Vocabulary(["a"]).save("no/such.arrow")),
    ],
    JobError: [
        Kind("there is no job file …", "no such file", "`seqflow init PATHS` writes one", lambda: Job.read("nothing.toml")),
        Kind("…: not TOML: …", "the file is not TOML", "the message has line and column", lambda: job("[batch")),
        Kind("…, line …: unknown section … (did you mean …?)", "a section that is misspelt", "[the sections](job-keys.md)", lambda: job("[bach]\nn = 1")),
        Kind("…, line …: unknown key … in … (did you mean …?)", "a key that is misspelt, or of another kind of batch", "the second line lists the keys", lambda: job('[batch]\nkind = "packed"\ncapacty = 4')),
        Kind("…, line …: … is …, expected …", "a value of another type or out of range", "[the keys](job-keys.md) and what they take", lambda: job('[batch]\nn = "two"')),
        Kind("…: there is no [source]; its paths say what to read", "a job without a source", "`[source]` with `paths`", lambda: Job.from_dict({"batch": 2})),
        Kind("…, line …: there is no file …", "a missing constant, net or tokenizer", "paths are from the folder of the job", lambda: run(job('[constants]\nt = "no.npy"\n[output]\nkind = "none"'))),
        Kind("imports: there is no module …, neither in … nor installed", "the module of your ops is not found", "put it into the folder of the job, or install it", lambda: run(Job.from_dict({"imports": ["no_such_ops"], "source": {"paths": "rows.parquet"}}))),
        Kind('output: there is no path to write to; give one, or kind = "none" to write nothing', "no `[output]`", "`--output PATH`, or `kind`", lambda: run(job(""))),
        Kind("output: the batches have no column …", "`output.columns` names none", "the second line says what they have", lambda: run(job('[output]\npath = "out"\ncolumns = ["m"]'))),
        Kind("output: … exists", "a command would replace a file", "`--overwrite`, or another output", lambda: build_vocabulary("rows.parquet", "n", Path("v.arrow")) or build_vocabulary("rows.parquet", "n", Path("v.arrow"))),
        Kind("output: the path … ends in …, expected …", "a suffix that nothing writes", ".parquet, .arrow, or a folder", lambda: run(job('[output]\npath = "out.csv"'))),
        Kind("output.path: … is or holds …, a file that is read", "the output would replace its input", "write somewhere else", lambda: run(job('[output]\npath = "rows.parquet"'))),
        Kind("…, line …: … needs …", "a key without a default is missing", "give it: [the keys](job-keys.md)", lambda: job('[batch]\nkind = "packed"')),
        Kind("output: … is of another job or of other data: …", "the folder has the complete output of a job that differs", "`--overwrite`, another path, or `--resume --accept-changes`", lambda: written_otherwise()),
        Kind("output: the folder … holds …, which … does not list", "the folder has files that no job has written", "another path, or `--overwrite`", lambda: foreign_file()),
        Kind("output: … has …, which is not a column of the output", "`sort_by` or `partition_by` names an unknown column", "a column of the output", lambda: run(job('[output]\npath = "out"\nsort_by = "m"'))),
        Kind("output: partition_by makes folders, but the path … is one file; give a folder", "one file cannot be many", 'a folder, `path = "out/"`', lambda: run(job('[output]\npath = "out.parquet"\npartition_by = "n"'))),
        Kind("append: …", "the output of all files is not that of some files after others", "the second line of the message; or `--overwrite`", lambda: run(job('[output]\npath = "out.parquet"'), append=True)),
        Kind("output: … rows were made, expected at least … (min_rows)", "fewer rows were left than `[output] min_rows`", "`seqflow report JOB`, or a lower `min_rows`", lambda: run(job('[output]\npath = "few"\nmin_rows = 1000'))),
        Kind("resume goes on with what is there, overwrite removes it: expected one of them", "both were asked for", "one of them", lambda: run(job('[output]\npath = "out"'), resume=True, overwrite=True)),
    ],
    TypeError: [
        Kind("the number of batches is not known before reading: …", "`len` of a loader whose plan depends on the data", "`index=`, `steps_per_epoch=`, or `Rows(n)`", lambda: len(sf.Loader(TABLE, batch=sf.TokenBudget(9)))),
    ],
    IndexError: [Kind("sequence … is outside [-…, …)", "`Sequence[i]` of a sequence that is not there", "count from 0", lambda: sf.Sequence(X, [N])[9])],
}  # fmt: skip
"""The kinds of each class."""


def classes() -> Iterator[type[Exception]]:
    """The errors of seqflow, in the order in which their file has them, then Python's own."""
    yield from (
        one
        for one in vars(errors).values()
        if inspect.isclass(one) and issubclass(one, SeqflowError) and one is not SeqflowError
    )
    yield from (TypeError, IndexError)


def page() -> str:
    """The text of docs/errors.md."""
    return "\n".join([_HEAD, *map(_section, classes())])


_HEAD = """\
# Errors

<!-- Written by `python tests/shared/error_kinds.py`; do not edit. -->

Messages, their meaning, and advice. Look for the class, then for the fixed words: `…` is a part that varies.

The first line of a message names the op or the place, the argument, the value found, the expected value and its origin;
it ends with the op's inputs, as in [its signature](signatures.md). The lines below give advice, or point at the place in a
text. In a net, the failed statement is added, with the shapes of its inputs.

All errors are `SeqflowError`s, and some are also errors of Python, for code that catches those. The classes, and which of
them is raised, [are stable](guarantees.md#stability); the words may change.
"""


def _section(error: type[Exception]) -> str:
    about = "Of Python's own errors, those that say something of seqflow."
    if issubclass(error, SeqflowError):
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__ if base is not SeqflowError)
        about = f"{(error.__doc__ or '').strip()} It is also: {bases}."
    rows = [("message", "meaning", "what to do"), ("---", "---", "---")]
    rows += [(f"`{kind.message}`", kind.meaning, kind.advice) for kind in KINDS[error]]
    table = "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
    return f"## {error.__name__}\n\n{about}\n\n{table}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
