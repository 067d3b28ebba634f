"""The public names, as type checkers see them. Written by `python -m tools.stubs`; do not edit."""

from seqflow import auto as auto, ops as ops, providers as providers, registry as registry, executor as executor, jax as jax, kernels as kernels, ray as ray, torch as torch
from seqflow.arrow_function import arrow_function
from seqflow.errors import ExpressionError, JobError, LodError, NetError, OpError, ProviderError, SeqflowError, ShapeError
from seqflow.executor import run
from seqflow.expression import Expression
from seqflow.kernels import info
from seqflow.loader import Along, BadRows, Balance, Buckets, Loader, Mix, Packed, Pad, Prefetch, Ranks, Rows, Schedule, Shuffle, TokenBudget, verdict
from seqflow.loader.from_rows import from_rows
from seqflow.lod import LoD
from seqflow.map_features import features, pool_features
from seqflow.net import Net
from seqflow.providers import Arrow, BadFiles, Csv, JsonLines, Megatron, Numpy, Parquet, Tar, Text, open
from seqflow.record.from_arrow.columns import from_arrow
from seqflow.record.to_arrow import to_arrow
from seqflow.registry import op
from seqflow.sequence import Sequence
from seqflow.serving.client import served
from seqflow.serving.server import serve
from seqflow.shape import Dimension, PartialShape
from seqflow.tensor import TensorSlice, TensorSpec
from seqflow.vocabulary import Vocabulary

__version__: str

def set_num_threads(count: int) -> None: ...
__all__ = ['Along', 'Arrow', 'BadFiles', 'BadRows', 'Balance', 'Buckets', 'Csv', 'Dimension', 'Expression', 'ExpressionError', 'JobError', 'JsonLines', 'LoD', 'Loader', 'LodError', 'Megatron', 'Mix', 'Net', 'NetError', 'Numpy', 'OpError', 'Packed', 'Pad', 'Parquet', 'PartialShape', 'Prefetch', 'ProviderError', 'Ranks', 'Rows', 'Schedule', 'SeqflowError', 'Sequence', 'ShapeError', 'Shuffle', 'Tar', 'TensorSlice', 'TensorSpec', 'Text', 'TokenBudget', 'Vocabulary', 'arrow_function', 'auto', 'features', 'from_arrow', 'from_rows', 'info', 'op', 'open', 'ops', 'pool_features', 'providers', 'registry', 'run', 'serve', 'served', 'set_num_threads', 'to_arrow', 'verdict']
