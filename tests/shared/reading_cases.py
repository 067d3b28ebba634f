"""Sources of every kind and what reading them gives, of which checksums are recorded: `python
tests/shared/reading_cases.py` records them again, or those that are named; with `--show` it prints them whole instead,
to compare two versions.

Each kind is read whole, in slices, under filters, without some of its columns, damaged, and with rows that do not fit;
rows are recorded by their number and a checksum, with what else a read tells. The identity of a loader of the source is
recorded too: the data of its state, and the key of its index.
"""

import gzip
import io
import json
import os
import sys
import tarfile
import tempfile
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

import seqflow as sf
from seqflow.providers import Block
from seqflow.providers.filter.dropped_rows import DroppedRows

READ = Path(__file__).parents[1] / "providers" / "reading.json"
PARTS = ((0, 260), (260, 410), (410, 500))
"""Rows of each file."""
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "x": pa.float64(),
        "text": pa.string(),
        "tokens": pa.list_(pa.int32()),
        "s": pa.struct({"a": pa.int32(), "b": pa.string()}),
    }
)
FEW = pa.schema([SCHEMA.field(name) for name in ("id", "x", "text")])
CODED = pa.schema([*FEW, ("code", pa.dictionary(pa.int32(), pa.string()))])


def rows_of(start, stop, schema=SCHEMA):
    made = {
        "id": lambda i: i,
        "x": lambda i: None if i % 11 == 0 else i / 4,
        "text": lambda i: None if i % 13 == 0 else "é" * (i % 5) + str(i),
        "tokens": lambda i: [i] * (i % 4),
        "s": lambda i: {"a": i % 7, "b": f"b{i % 3}"},
        "code": lambda i: f"c{i % 17 - i // 100}",
    }
    return [{name: made[name](i) for name in schema.names} for i in range(start, stop)]


def table_of(start, stop, schema=SCHEMA):
    return pa.Table.from_pylist(rows_of(start, stop, schema), schema=schema)


def write_parquet(path, part, groups=90, schema=SCHEMA):
    pq.write_table(
        table_of(*part, schema), f"{path}.parquet", row_group_size=groups, write_page_checksum=True
    )


def write_long(path, part):
    """Texts whose size the footer does not tell, since a dictionary has each of them once."""
    table = pa.table({"id": range(*part), "text": ["y" * 5000 if i % 3 else "z" for i in range(*part)]})
    pq.write_table(table, f"{path}.parquet", row_group_size=90, store_schema=False)


def write_arrow(path, part, schema=SCHEMA):
    with pa.ipc.new_file(f"{path}.arrow", schema) as file:
        for batch in table_of(*part, schema).to_batches(90):
            file.write_batch(batch)


def write_arrow_stream(path, part):
    with pa.ipc.new_stream(f"{path}.arrows", SCHEMA) as file:
        for batch in table_of(*part).to_batches(90):
            file.write_batch(batch)


def write_jsonl(path, part, opened=open, suffix="jsonl"):
    with opened(f"{path}.{suffix}", "wb") as file:
        for row in rows_of(*part):
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            if row["id"] % 150 == 50:
                file.write(b'{"id": 7, "x": \n\n')


def write_csv(path, part):
    with open(f"{path}.csv", "w", encoding="utf-8", newline="") as file:
        file.write("id,x,text\n")
        for row in rows_of(*part, FEW):
            file.write(f"{row['id']},{'' if row['x'] is None else row['x']},{row['text'] or ''}\n")
            if row["id"] % 150 == 50:
                file.write("1,2,3,4\n")


def write_text(path, part):
    for start in range(*part, 10):
        content = (rows_of(start, start + 1)[0]["text"] or "").encode()
        Path(f"{path}_{start:04}.txt").write_bytes(b"\xff" if start == 310 else content * 40)


def write_numpy(path, part):
    np.savez(f"{path}.npz", id=np.arange(*part), x=np.arange(*part) / 4)


def write_megatron(path, part):
    lengths = np.arange(*part, dtype="<i4") % 5
    pointers = 2 * (np.cumsum(lengths, dtype="<i8") - lengths)
    head = b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + bytes([8])
    head += len(lengths).to_bytes(8, "little") + (len(lengths) + 1).to_bytes(8, "little")
    documents = np.arange(len(lengths) + 1, dtype="<i8")
    Path(f"{path}.idx").write_bytes(head + lengths.tobytes() + pointers.tobytes() + documents.tobytes())
    Path(f"{path}.bin").write_bytes(np.repeat(np.arange(*part, dtype="<u2"), lengths).tobytes())


def write_tar(path, part):
    with tarfile.open(f"{path}.tar", "w") as archive:
        for i in range(*part, 3):
            for suffix, content in (("txt", f"text {i}".encode() * (i % 3)), ("cls", str(i % 10).encode())):
                info = tarfile.TarInfo(f"{i:05}.{suffix}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))


FILES = {
    "parquet": (write_parquet, {}, "id % 3 == 1 and x > 20"),
    "small parquet": (partial(write_parquet, groups=9), {}, "id > 100 and id < 300 and s.a != 2"),
    "long parquet": (write_long, {}, "id % 3 == 1"),
    "coded parquet": (partial(write_parquet, schema=CODED), {}, "code != 'c3'"),
    "arrow": (write_arrow, {}, "id % 3 == 1 and x > 20"),
    "coded arrow": (partial(write_arrow, schema=CODED), {}, "code != 'c3'"),
    "arrow stream": (write_arrow_stream, {}, "id % 3 == 1 and x > 20"),
    "jsonl": (write_jsonl, {"format": sf.JsonLines(batch_bytes=4000)}, "id % 3 == 1 and s.b == 'b1'"),
    "jsonl.gz": (
        partial(write_jsonl, opened=partial(gzip.GzipFile, mtime=0), suffix="jsonl.gz"),
        {"format": sf.JsonLines(batch_bytes=4000)},
        "id % 3 == 1",
    ),
    "csv": (write_csv, {"format": sf.Csv(batch_bytes=1500)}, "id % 3 == 1 and x > 20"),
    "text": (write_text, {"format": sf.Text(encoding="utf-8", batch_bytes=1500)}, "lengths(text) > 100"),
    "numpy": (write_numpy, {"format": sf.Numpy(batch_bytes=1500)}, "id % 3 == 1 and x > 20"),
    "megatron": (write_megatron, {"format": sf.Megatron(batch_bytes=900)}, "lengths(tokens) > 2"),
    "tar": (write_tar, {"format": sf.Tar(batch_bytes=900)}, "cls == '5'"),
}
"""How files of a kind are written, the options to open them with, and a condition."""


COUNTS = ("rows", "batches", "filtered", "bad_rows", "dropped")


class Own:
    """A source of the user's own."""

    schema = FEW
    version = 3

    def blocks(self):
        return [Block(f"part {at}", at, stop - start, 300) for at, (start, stop) in enumerate(PARTS)]

    def read(self, block, columns):
        return table_of(*PARTS[block.index], FEW).select(columns)


def batches_of(schema=SCHEMA):
    whole = table_of(0, PARTS[-1][1], schema)
    return pa.RecordBatchReader.from_batches(schema, whole.to_batches(90))


def of_package(name, make):
    """Return what a package makes of rows; None where it is not installed."""
    try:
        __import__(name)
    except ImportError:
        return None
    return make(sys.modules[name])


OBJECTS = {
    "table": (lambda _: pa.Table.from_batches(list(batches_of())), {"batch_bytes": 5000}),
    "coded table": (lambda _: pa.Table.from_batches(list(batches_of(CODED))), {"batch_bytes": 5000}),
    "arrays": (lambda _: {"id": np.arange(300), "x": np.arange(300) / 4}, {"batch_bytes": 1500}),
    "function": (lambda _: batches_of, {"batch_bytes": 5000}),
    "reader": (lambda _: batches_of(), {}),
    "own": (lambda _: Own(), {}),
    "dataset": (lambda folder: pyarrow.dataset.dataset(folder, format="parquet"), {}),
    "hugging face": (
        lambda _: of_package(
            "datasets", lambda datasets: datasets.Dataset.from_dict(table_of(0, 300, FEW).to_pydict())
        ),
        {"batch_bytes": 5000},
    ),
    "polars": (
        lambda _: of_package("polars", lambda polars: polars.from_arrow(table_of(0, 300, FEW)).lazy()),
        {"batch_bytes": 5000},
    ),
}
"""How an object is made that is no file, and options."""


def checksum(value):
    return f"{zlib.crc32(repr(value).encode()):08x}"


class Recorder:
    """What reading a source gives, without the folder that it is in."""

    def __init__(self, folder):
        self.folder = str(folder)

    def shown(self, text):
        # what pyarrow, NumPy and the system say differs by their version
        first = str(text).replace(self.folder, "").split("\n")[0]
        return first.partition("can't be read")[0]

    def within(self, rows):
        return repr(rows).replace(self.folder, "")

    def attempt(self, run):
        try:
            return run()
        except (sf.SeqflowError, KeyError) as error:
            return f"{type(error).__name__}: {self.shown(error)}"

    def kept(self, provider, block, columns=None, skips=True, **how):
        """A read as text: its rows, their numbers, those left out, bad rows and damage."""

        def run():
            bad = [] if skips else None
            found = provider.read_kept(block, columns, bad_rows=bad, **how)
            parts = [
                f"{found.table.num_rows} rows {checksum(self.within(found.table.to_pylist()))}",
                f"{found.table.schema.names}",
                f"numbers {checksum([*map(int, found.numbers)])}",
                f"left out {found.filtered}",
            ]
            if bad:
                shown = [(one.row, one.column, self.shown(one.reason)) for one in bad]
                parts.append(f"bad {len(bad)} {checksum(shown)} {shown[0]}")
            if found.damage is not None:
                one = found.damage
                parts.append(f"damage {self.shown(one.path)} {one.block} {one.rows}")
            return ", ".join(parts)

        return self.attempt(run)

    def whole(self, provider, columns=None, **how):
        """All blocks read whole, with what they tell before."""

        def run():
            found, read = [], []
            for block in provider.blocks():
                found.append((self.shown(block.origin), block.index, block.num_rows))
                read.append(self.kept(provider, block, columns, **how))
            return [f"{len(found)} blocks {checksum(found)}", *shortened(read)]

        return self.attempt(run)

    def slices(self, provider, size, *, restarts=False):
        """All blocks read in slices; with `restarts`, out of order."""
        if not provider.slices_blocks:
            return "no slices"

        def run():
            read = []
            for block in provider.blocks(counted=True, max_bytes=1 << 20):
                if block.num_rows:
                    parts = [
                        range(at, min(at + size, block.num_rows)) for at in range(0, block.num_rows, size)
                    ]
                    parts = parts[:9] + parts[-2:] if size == 1 else parts
                    parts = parts[:1] + parts[2:] + parts[1:2] if restarts else parts
                    read += [self.kept(provider, block, rows=one, max_bytes=1 << 20) for one in parts]
            return shortened(read)

        return self.attempt(run)


def shortened(texts):
    """A few texts, or one checksum of all and the first two."""
    return texts if len(texts) <= 3 else [*texts[:2], f"{len(texts)} in all {checksum(texts)}"]


def written(kind, folder, in_folders):
    write = FILES[kind][0]
    for at, part in enumerate(PARTS):
        place = folder / (f"k={at % 2}/lang=l{at}" if in_folders else ".")
        place.mkdir(parents=True, exist_ok=True)
        write(place / f"part{at}", part)
    return str(folder)


def openers(kind, folder, in_folders):
    """Return a function that opens the source with further options, and a condition."""
    if kind in FILES:
        _, options, where = FILES[kind]
        source = written(kind, folder, in_folders)
        return (lambda **more: sf.open(source, **options, **more)), where
    if kind == "dataset":
        written("parquet", folder, False)
    make, options = OBJECTS[kind]
    if make(folder) is None:
        return None, ""
    where = "id % 3 == 1" if kind != "coded table" else "code != 'c3'"
    return (lambda **more: sf.open(make(folder), **options, **more)), where


def read_all(kind, folder, *, in_folders=False):
    """Everything that is recorded of reading a kind; None if a package is missing."""
    opened, where = openers(kind, folder, in_folders)
    if opened is None:
        return None
    look, names = Recorder(folder), opened().schema.names
    renamed = {name: f"{name}2" for name in names[:1]}
    found = {
        "schema": lambda: [f"{one.name}: {one.type}" for one in opened().schema],
        "whole": lambda: look.whole(opened()),
        "strict": lambda: look.whole(opened(), skips=False),
        "first column": lambda: look.whole(opened(), names[:1]),
        "last column first": lambda: look.whole(opened(columns=[*dict.fromkeys((names[-1], names[0]))])),
        "renamed": lambda: look.whole(opened(rename=renamed)),
        "no columns": lambda: look.whole(opened(), []),
        "bound": lambda: look.whole(opened(), max_bytes=20_000),
        "filter": lambda: look.whole(opened(where=where)),
        "filter of a column": lambda: look.whole(opened(where=where, columns=names[-1:])),
        "filter and bound": lambda: look.whole(opened(where=where), max_bytes=20_000),
        "filter that keeps none": lambda: look.whole(opened(where=f"({where}) and not ({where})")),
        "dropped": lambda: look.whole(dropped(opened())),
        "filter and dropped": lambda: look.whole(dropped(opened(where=where))),
    }
    for size in (1, 7, 997):
        found[f"slices of {size}"] = partial(look.slices, opened(), size)
        found[f"filter, slices of {size}"] = partial(look.slices, opened(where=where), size)
    found["restarts"] = lambda: look.slices(opened(), 7, restarts=True)
    found["filter, restarts"] = lambda: look.slices(opened(where=where), 7, restarts=True)
    found["dropped, slices of 7"] = lambda: look.slices(dropped(opened()), 7)
    if "id" in names and kind in FILES:
        narrow = {"schema": {"id": "int8"}}
        found["narrow"] = lambda: look.whole(opened(**narrow))
        found["narrow, strict"] = lambda: look.whole(opened(**narrow), skips=False)
        found["narrow, filter"] = lambda: look.whole(opened(**narrow, where=where))
        found["narrow, slices of 7"] = lambda: look.slices(opened(**narrow), 7)
    if in_folders:
        found["folders only"] = lambda: look.whole(opened(), ["k"])
        found["folders only, opened"] = lambda: look.whole(opened(columns=["lang", "k"]))
        found["folders only, slices"] = lambda: look.slices(opened(columns=["lang", "k"]), 7)
        found["filter of folders"] = lambda: look.whole(opened(where=f"k == 1 or ({where})"))
        found["filter of folders, slices"] = lambda: look.slices(opened(where=f"k == 1 or ({where})"), 7)
    if kind in FILES and kind != "text":
        found["damaged"] = lambda: look.whole(damaged(opened(), kind))
        found["damaged, left out"] = lambda: look.whole(damaged(opened(bad_files="skip"), kind))
    return {name: look.attempt(run) for name, run in found.items()}


def dropped(provider):
    """The provider without some rows of each block."""
    if provider.is_stream:
        return provider
    positions = {
        (one.origin, one.index): np.arange(1, one.num_rows or 4, 3, dtype=np.int64)
        for one in provider.of_files(provider.files).blocks()
    }
    return provider.without(DroppedRows(positions, {"test": 1}))


def damaged(provider, kind):
    """Damage the last file after it was opened."""
    path = sorted(provider.files)[-1]
    if "parquet" in kind:
        chunk = pq.read_metadata(path).row_group(0).column(0)
        with open(path, "r+b") as file:  # inside the values: the checksum of a page differs
            file.seek(chunk.data_page_offset + chunk.total_compressed_size - 20)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 0xFF]))
    elif "arrow" not in kind:  # a file that is mapped must not be cut
        os.truncate(path, os.path.getsize(path) // 2)
    return provider


def identities(kind, folder, *, in_folders=False):
    """The data of a state, and the key of an index, of a loader of each kind and variant."""
    opened, where = openers(kind, folder, in_folders)
    if opened is None:
        return None
    names = opened().schema.names
    variants = {"plain": {}, "filter": {"where": where}, "renamed": {"rename": {names[0]: "other"}}}
    if in_folders:
        variants["renamed folder"] = {"rename": {"k": "other"}}
        variants["filter of folders"] = {"where": "k == 1"}
    found = {}
    for name, options in variants.items():
        loader = sf.Loader(opened(**options), batch=100, bad_rows="skip")
        if loader.source.read_once:
            continue
        data = loader.state_dict()["data"]
        key = None if loader.source.is_stream else loader.pipeline.identity.index_key(None)
        found[name] = json.loads(json.dumps({"data": portable(data), "key": key and portable(key)}))
    return found


def epoch(kind, folder, *, in_folders=False):
    """The batches of a loader in one window, where they come from, and what it counts."""
    opened, where = openers(kind, folder, in_folders)
    if opened is None:
        return None
    look, found = Recorder(folder), {}
    for name, options in {"plain": {}, "filter": {"where": where}}.items():
        loader = sf.Loader(opened(**options), batch=20, bad_rows="skip", shuffle=True, threads=0)
        rows = [checksum(look.within(sf.to_arrow(batch).to_pylist())) for batch in loader]
        counts = {name: getattr(loader.stats(), name) for name in COUNTS}
        found[name] = [f"{len(rows)} batches {checksum(rows)}", counts]
        if rows and not loader.source.is_stream:
            traces = [(look.shown(one.file), one.block, one.row) for one in loader.trace(0)]
            found[name].append(f"trace {checksum(traces)} {traces[0][0]}")
    return found


def portable(value):
    """An identity without the sizes and digests of files, which writers of other versions write differently."""
    if isinstance(value, dict):
        return {
            name: [[path, rows] for path, _, rows, _ in one] if name == "files" else portable(one)
            for name, one in value.items()
        }
    return value


def cases():
    return [
        *((kind, folders) for kind in FILES for folders in (False, True)),
        *((kind, False) for kind in OBJECTS),
    ]


def name_of(kind, in_folders):
    return f"{kind} in folders" if in_folders else kind


def record(kind, in_folders, folder):
    (folder / "read").mkdir(), (folder / "identity").mkdir()
    found = {
        "read": read_all(kind, folder / "read", in_folders=in_folders),
        "epoch": epoch(kind, folder / "identity", in_folders=in_folders),
        "identity": identities(kind, folder / "identity", in_folders=in_folders),
    }
    return json.loads(json.dumps(found))


def checksums(found):
    """The checksum of each case of what `record` gives."""
    return {
        part: of and {case: checksum(json.dumps(one, sort_keys=True)) for case, one in of.items()}
        for part, of in found.items()
    }


if __name__ == "__main__":
    shows, names = "--show" in sys.argv, [one for one in sys.argv[1:] if one != "--show"]
    recorded = json.loads(READ.read_text(encoding="utf-8")) if READ.exists() else {}
    for kind, in_folders in cases():
        if not names or name_of(kind, in_folders) in names:
            with tempfile.TemporaryDirectory() as folder:
                found = record(kind, in_folders, Path(folder))
            if shows:
                print(json.dumps({name_of(kind, in_folders): found}, indent=1, ensure_ascii=False))
            recorded[name_of(kind, in_folders)] = checksums(found)
    if not shows:
        READ.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
