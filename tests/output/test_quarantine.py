"""The quarantine file of bad rows, as tables of Arrow."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqflow.errors import JobError, ProviderError
from seqflow.output.file_writer import FileWriter
from seqflow.output.output_file import Batches
from seqflow.output.quarantine import NoQuarantine, Quarantine, encoding_of, with_reasons
from seqflow.record import BadRow


def bad(*ids):
    rows = pa.table({"id": list(ids)})
    return with_reasons(rows, [BadRow(at, "id", "wrong") for at in range(len(ids))], "x.csv", 2, ids)


def batches(first, stop):
    return Batches({"batch": first}, stop)


def ids_in(path):
    return pq.read_table(path)["id"].to_pylist()


def test_each_row_has_its_place_and_the_reason():
    one = BadRow(0, "id", "no number")
    table = with_reasons(pa.table({"bad": ["a"], "id": [None]}), [one], "x.csv", 2, [7])
    assert table.column_names == ["bad_", "bad", "id"]
    assert table["bad_"].to_pylist() == [
        {"file": "x.csv", "block": 2, "row": 7, "column": "id", "reason": "no number", "line": None}
    ]


def test_what_was_written_is_in_the_file_as_it_is_published(tmp_path):
    path = tmp_path / "bad.parquet"
    file = Quarantine(path)
    file.write(bad(1, 2))
    file.publish()
    assert ids_in(path) == [1, 2]
    file.write(bad(3))
    file.close(finished=True)
    assert ids_in(path) == [1, 2, 3]
    assert [one.name for one in tmp_path.iterdir() if "part" in one.name] == []


@pytest.mark.parametrize("finished", [True, False])
def test_the_file_of_an_earlier_run_goes_with_a_finished_run_without_bad_rows(tmp_path, finished):
    path = tmp_path / "bad.parquet"
    pq.write_table(bad(1), path)
    Quarantine(path).close(finished=finished)
    assert path.exists() != finished


def test_no_other_file_is_replaced(tmp_path):
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    with pytest.raises(ProviderError, match="exists and is not a quarantine file of an earlier run"):
        Quarantine(path)
    path.write_bytes(b"text")
    with pytest.raises(ProviderError, match="exists and is not a quarantine file"):
        Quarantine(path)
    with pytest.raises(ProviderError, match="a file of the source"):
        Quarantine(path, [str(path)])


def test_pieces_are_joined_in_order_wherever_they_were_written(tmp_path):
    path, folder = tmp_path / "bad.parquet", tmp_path / "worker"
    folder.mkdir()
    file = Quarantine(path)
    file.write(bad(1))
    file.commit(batches(0, 4))
    piece = FileWriter(path, encoding_of(path), folder / "00001-x")
    piece.write(bad(2, 3), 0)
    file.adopt(piece.finish(piece.piece), batches(4, 9))
    file.leave()
    later = Quarantine(path, pieces=file.pieces())  # as a run that goes on does
    assert later.num_pieces == 2
    later.write(bad(4))
    later.commit(batches(9, None))
    later.install()
    later.leave()
    assert ids_in(path) == [1, 2, 3, 4]


def test_a_damaged_piece_is_named(tmp_path):
    path = tmp_path / "bad.parquet"
    file = Quarantine(path)
    for one in (1, 2):
        file.write(bad(one))
        file.commit(batches(one, one + 1))
    first = next(one for one in tmp_path.iterdir() if "part-00000" in one.name)
    first.unlink()
    with pytest.raises(
        JobError, match=r"bad\.parquet' are gone, or not .*part-00000.*\n  --overwrite begins"
    ):
        file.check(None)


def test_a_progress_file_cannot_name_other_files_as_pieces(tmp_path):
    with pytest.raises(JobError, match="the progress file is damaged"):
        Quarantine(tmp_path / "bad.parquet", pieces=[{"name": "../x"}])


def test_a_run_that_writes_no_bad_rows_has_no_pieces():
    file = NoQuarantine()
    file.check(None)
    assert (file.num_pieces, file.pieces(), file.attempts_folder("x")) == (0, [], None)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("other", ["", "b"])
def test_the_bad_rows_of_another_output_stay(tmp_path, suffix, other):
    path = tmp_path / f"bad.{suffix}"
    file = Quarantine(path, owner="a")
    for one in (1, 2):
        file.write(bad(one))
        file.commit(batches(one, one + 1))
    pieces = file.pieces()
    file.leave()
    before = {one: one.read_bytes() for one in tmp_path.iterdir()}
    for _ in range(2):  # the lock is free after the first error
        with pytest.raises(
            ProviderError,
            match=r"has the bad rows of another output, 'a'\n  each output needs a file of its own",
        ):
            Quarantine(path, owner=other)
    assert {one: one.read_bytes() for one in tmp_path.iterdir()} == before
    again = Quarantine(path, pieces=pieces, owner="a")
    again.install()
    again.leave()
    with pytest.raises(ProviderError, match="another output, 'a'"):
        Quarantine(path, owner=other)
    Quarantine(path, owner="a").close(finished=True)  # without bad rows
    assert list(tmp_path.iterdir()) == []
