"""Objects that are not read are refused by name, with what to do."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import ProviderError


def of_package(package, name, bases=()):
    """An object of a class as another package has it."""
    return type(name, bases, {"__module__": f"{package}.data"})()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (of_package("torch", "Dataset"), r"a torch Dataset can't be read\n.*the files or tables"),
        (of_package("ray", "Dataset"), r"a ray Dataset can't be read\n.*iter_batches"),
        (of_package("pyspark", "DataFrame"), r"a pyspark DataFrame can't be read\n.*toArrow"),
        (of_package("dask", "DataFrame"), r"a dask DataFrame can't be read\nwrite it to Parquet"),
        (
            of_package("streaming", "StreamingDataset"),
            r"a streaming StreamingDataset can't be read\n.*function",
        ),
        (object(), "expected a record batch, .* not object"),
        (7, "expected a record batch, .* not int"),
        (print, "the function print gives a NoneType, expected an object with __arrow_c_stream__"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_object_that_is_not_read_is_named(source, message):
    with pytest.raises(ProviderError, match=message):
        sf.open(source)


def test_a_subclass_is_known_by_its_base():
    torch = pytest.importorskip("torch.utils.data")

    class Numbers(torch.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, at):
            return at

    with pytest.raises(ProviderError, match="a torch Dataset can't be read"):
        sf.open(Numbers())


def test_a_parquet_file_is_opened_by_its_path(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pq.ParquetFile(tmp_path / "a.parquet") as file, pytest.raises(ProviderError, match="open its path"):
        sf.open(file)


def test_a_class_of_the_same_name_elsewhere_is_none_of_them():
    class Dataset:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table({"a": [1]}).__arrow_c_stream__(requested_schema)

    assert sf.open(Dataset())["a"].tolist() == [1]
