"""Readers of files that stay open between two row groups."""

import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.providers.formats.idle_readers import IdleReaders


def test_a_reader_is_used_again_and_by_one_at_a_time(tmp_path):
    path, readers, opened = str(tmp_path / "x"), IdleReaders(), []
    (tmp_path / "x").write_text("x")

    def open_file(_):
        opened.append(object())
        return opened[-1]

    with readers.reader(path, open_file) as one, readers.reader(path, open_file) as other:
        assert one is not other
    with readers.reader(path, open_file) as again:
        assert again in (one, other)
    with pytest.raises(ValueError, match="damaged"), readers.reader(path, open_file):
        raise ValueError("damaged")
    with readers.reader(path, open_file):
        assert len(opened) == 2
    (tmp_path / "x").write_text("longer")
    with readers.reader(path, open_file) as new:
        assert new is opened[2]
    with pickle.loads(pickle.dumps(readers)).reader(path, open_file):
        assert len(opened) == 4


def test_few_files_stay_open(tmp_path):
    readers = IdleReaders()
    for number in range(20):
        (path := tmp_path / str(number)).write_text("x")
        with readers.reader(str(path), str.upper):
            pass
    assert len(readers.idle) == 4


def test_a_child_process_opens_its_own(tmp_path):
    readers = IdleReaders()
    (path := tmp_path / "x").write_text("x")
    with readers.reader(str(path), str.upper):
        pass
    pid = os.fork()
    if not pid:
        os._exit(len(readers.idle))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize("memory_map", [True, False])
def test_a_file_that_is_written_again_between_two_row_groups_is_noticed(tmp_path, memory_map):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": np.arange(6)}), path, row_group_size=2)
    provider = sf.open(path, format=sf.Parquet(memory_map=memory_map))
    first, second, third = provider.blocks()
    assert provider.read(first)["x"].to_pylist() == [0, 1]
    other = tmp_path / "other"
    pq.write_table(pa.table({"x": np.arange(6) + 10}), other, row_group_size=2)
    os.replace(other, path)
    assert provider.read(second)["x"].to_pylist() == [12, 13]
    pq.write_table(pa.table({"x": np.arange(5)}), other, row_group_size=2)
    os.replace(other, path)
    with pytest.raises(sf.ProviderError):
        provider.read(third)
