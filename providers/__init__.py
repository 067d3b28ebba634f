"""Sources of records: files, Arrow streams and memory, all read block by block."""

if __name__ != "seqflow.providers":
    raise ImportError("import seqflow.providers; the name 'providers' alone is a folder of the repository")

from seqflow.providers.bad_files import BadFile, BadFiles
from seqflow.providers.formats.arrow import Arrow
from seqflow.providers.formats.megatron import Megatron
from seqflow.providers.formats.numpy_files import Numpy
from seqflow.providers.formats.parquet import Parquet
from seqflow.providers.formats.tar import Tar
from seqflow.providers.formats.text import Text
from seqflow.providers.lines.csv_lines import Csv
from seqflow.providers.lines.json_lines import JsonLines
from seqflow.providers.opening import open
from seqflow.providers.own_sources import OwnSource
from seqflow.providers.provider import Block, Provider, Source

__all__ = [
    "Arrow",
    "BadFile",
    "BadFiles",
    "Block",
    "Csv",
    "JsonLines",
    "Megatron",
    "Numpy",
    "OwnSource",
    "Parquet",
    "Provider",
    "Source",
    "Tar",
    "Text",
    "open",
]
