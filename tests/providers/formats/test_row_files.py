"""What holds for all formats whose files say little but rows: epochs, pickles, resume, pruning, jobs, damage."""

import io
import pickle
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from marks import thorough

import seqflow as sf
from seqflow.errors import ProviderError, SeqflowError
from seqflow.job import Job, run
from seqflow.providers import Provider

ROWS = 300
ID = np.arange(ROWS)
X = (ID[:, None] * np.array([1, -1])).astype(np.float32)


def write_npz(path: Path) -> None:
    np.savez(path, id=ID, x=X)


def write_structured_npy(path: Path) -> None:
    array = np.zeros(ROWS, [("id", "<i8"), ("x", ">f4", (2,))])
    array["id"], array["x"] = ID, X
    np.save(path, array)


def write_compressed_npz(path: Path) -> None:
    np.savez_compressed(path, id=ID, x=X)


def write_tar(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        for n in range(ROWS):
            for suffix, content in (("id", b"%d" % n), ("data", bytes([n % 256]) * n)):
                info = tarfile.TarInfo(f"{'long/' * (n % 40)}{n:05}.{suffix}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))


def write_megatron(path: Path) -> None:
    lengths = ID % 5 + 1
    tokens = np.repeat(ID, lengths).astype(np.uint16)
    pointers = 2 * np.append(0, np.cumsum(lengths)[:-1])
    path.with_suffix(".bin").write_bytes(tokens.tobytes())
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, ROWS, ROWS + 1)
    arrays = (lengths.astype("<i4"), pointers.astype("<i8"), np.arange(ROWS + 1, dtype="<i8"))
    path.write_bytes(head + b"".join(array.tobytes() for array in arrays))


TAR = [
    {"__key__": f"{'long/' * (n % 40)}{n:05}", "id": b"%d" % n, "data": bytes([n % 256]) * n}
    for n in range(ROWS)
]


FORMATS: dict[str, tuple[str, Callable[[Path], None], Any, list[dict[str, Any]]]] = {
    "npz": (
        "a.npz",
        write_npz,
        sf.Numpy(batch_bytes=500),
        [{"id": n, "x": X[n].tolist()} for n in range(ROWS)],
    ),
    "compressed npz": (
        "a.npz",
        write_compressed_npz,
        None,
        [{"id": n, "x": X[n].tolist()} for n in range(ROWS)],
    ),
    "npy": (
        "a.npy",
        write_structured_npy,
        sf.Numpy(batch_bytes=500),
        [{"id": n, "x": X[n].tolist()} for n in range(ROWS)],
    ),
    "tar": ("a.tar", write_tar, sf.Tar(batch_bytes=2000), TAR),
    "megatron": (
        "a.idx",
        write_megatron,
        sf.Megatron(batch_bytes=500),
        [{"tokens": [n] * (n % 5 + 1)} for n in range(ROWS)],
    ),
}
"""By name: the file, what writes it, its format, and its rows."""
each_format = pytest.mark.parametrize("form", FORMATS)


def write(form: str, folder: Path) -> tuple[Path, Any, list[dict[str, Any]]]:
    name, writer, format, rows = FORMATS[form]
    writer(folder / name)
    return folder / name, format, rows


def rows_of(provider: Provider) -> list[dict[str, Any]]:
    return [row for block in provider.blocks() for row in provider.read(block).to_pylist()]


def column_of(form: str) -> str:
    return "tokens" if form == "megatron" else "id"


def ids(loader: sf.Loader) -> list[int]:
    return [n for batch in loader for n in ids_of(batch)]


def ids_of(batch: Any) -> list[int]:
    """The numbers of the rows: of a column of numbers, of digits, or the first of each list."""
    if "id" in batch:
        return batch["id"].tolist()  # type: ignore[no-any-return]
    name = "tokens" if "tokens.values" in batch else "id"
    values, ends = batch[f"{name}.values"], np.cumsum(batch[f"{name}.lengths"])
    parts = np.split(values, ends[:-1])
    return [int(part[0]) if name == "tokens" else int(bytes(part)) for part in parts]


@each_format
def test_rows_are_those_that_were_written(tmp_path: Path, form: str) -> None:
    path, format, rows = write(form, tmp_path)
    provider = sf.open(path, format=format)
    assert rows_of(provider) == rows
    assert provider.num_rows in (len(rows), None)
    assert provider.files[0] == str(path)
    name = column_of(form)
    renamed = sf.open(path, rename={name: "n"}, columns=["n"], format=format)
    assert rows_of(renamed) == [{"n": row[name]} for row in rows]
    if not isinstance(rows[0][name], int):
        chosen = sf.open(path, columns=[name], where=f"{name}.lengths > 2", format=format)
        assert rows_of(chosen) == [{name: row[name]} for row in rows if len(row[name]) > 2]
        return
    assert sf.open(path, columns=["id"], where="id >= 298", format=format)["id"].tolist() == [298, 299]  # type: ignore[union-attr]


@each_format
def test_epochs_pickles_and_resume(tmp_path: Path, form: str) -> None:
    path, format, _ = write(form, tmp_path)

    def loader() -> sf.Loader:
        return sf.Loader(path, columns=[column_of(form)], batch=7, window=2400, shuffle=True, format=format)

    first = loader()
    epochs = [ids(first), ids(first)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(ROWS))] * 2
    assert ids(pickle.loads(pickle.dumps(loader()))) == epochs[0]
    begun = loader()
    batches = iter(begun)
    start = [n for _ in range(9) for n in ids_of(next(batches))]
    after = loader()
    after.load_state_dict(begun.state_dict())
    assert start + ids(after) == epochs[0]


@each_format
def test_a_state_is_of_the_content_wherever_the_folder_lies(tmp_path: Path, form: str) -> None:
    path, format, _ = write(form, tmp_path)
    state = sf.Loader(path, batch=7, format=format).state_dict()
    moved = tmp_path / "elsewhere" / path.name
    moved.parent.mkdir()
    for one in path.parent.glob("a.*"):
        one.rename(moved.parent / one.name)
    sf.Loader(moved, batch=7, format=format).load_state_dict(state)


@each_format
def test_commands_and_jobs(tmp_path: Path, form: str) -> None:
    path, format, _ = write(form, tmp_path)
    shown = seqflow("inspect", path.name, folder=tmp_path)
    assert "300 rows" in shown.stdout, shown.stderr
    text = "" if format is None else f"[source.{format.kind}]\nbatch_bytes = {format.batch_bytes}\n"
    (tmp_path / "job.toml").write_text(f'[source]\npaths = "{path.name}"\n{text}[output]\npath = "out"\n')
    checked = seqflow("check", "job.toml", folder=tmp_path)
    assert column_of(form) in checked.stdout, checked.stderr
    assert run(Job.read(tmp_path / "job.toml")).rows == ROWS
    assert len(pq.read_table(tmp_path / "out")) == ROWS


@each_format
def test_partitions_and_several_files(tmp_path: Path, form: str) -> None:
    name, writer, format, rows = FORMATS[form]
    for lang in ("c", "py"):
        (tmp_path / f"lang={lang}").mkdir()
        writer(tmp_path / f"lang={lang}" / name)
    provider = sf.open(tmp_path, columns=[column_of(form), "lang"], format=format)
    found = rows_of(provider)
    expected = [{column_of(form): row[column_of(form)], "lang": lang} for lang in ("c", "py") for row in rows]
    assert found == expected
    assert provider.left_out == ""


READ = """
import sys
import seqflow as sf
from seqflow.errors import SeqflowError
from seqflow.record import convert
content = open(sys.argv[1], "rb").read()
step = max(1, len(content) // int(sys.argv[3]))
changed = [content[:at] for at in range(0, len(content), step)]
near = {*range(0, min(len(content), 300), min(step, 9)), *range(0, len(content), step), *range(max(0, len(content) - 200), len(content), 5)}
for at in sorted(near):
    for bits in (1, 128, 255):
        changed.append(content[:at] + bytes([content[at] ^ bits]) + content[at + 1 :])
    changed.append(content[:at] + b"\\xff" * 8 + content[at + 8 :])
for one in changed:
    with open(sys.argv[2], "wb") as file:
        file.write(one)
    try:
        provider = sf.open(sys.argv[2])
        for block in provider.blocks():
            convert(provider.read(block), valid=True)
    except SeqflowError:
        pass
print("alive", len(changed))
"""


@pytest.mark.slow
@each_format
@pytest.mark.parametrize("places", [20, *thorough(150)])
def test_no_damage_ends_the_process_or_takes_much_memory(tmp_path: Path, form: str, places: int) -> None:
    path, _, _ = write(form, tmp_path)
    damaged = tmp_path / "damaged" / path.name
    damaged.parent.mkdir()
    if form == "megatron":
        damaged.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes())
    done = subprocess.run(
        ["bash", "-c", 'ulimit -v 6000000; exec "$@"', "-", sys.executable, "-c", READ, path, damaged, str(places)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("alive"), done.stderr[-3000:]


@each_format
def test_a_cut_file_and_another_file_are_errors_that_name_it(tmp_path: Path, form: str) -> None:
    path, format, _ = write(form, tmp_path)
    content = path.read_bytes()
    for damaged in (b"", b"something else" * 100, content[: len(content) // 2], content[:20]):
        path.write_bytes(damaged)
        with pytest.raises(ProviderError, match=path.name):
            rows_of(sf.open(path, format=format))


def test_several_files_agree_in_their_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", id=ID)
    np.savez(tmp_path / "b.npz", id=ID.astype(np.float32))
    with pytest.raises(SeqflowError, match=r"column 'id' is int64 in .*a.npz, but float in .*b.npz"):
        sf.open([tmp_path / "a.npz", tmp_path / "b.npz"])
    assert pa.types.is_int64(sf.open(tmp_path / "a.npz").schema.field("id").type)
