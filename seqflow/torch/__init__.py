"""Conversion to and from PyTorch: batches, datasets for its DataLoader, attention masks, and weights.

    for batch in loader.to("torch"): ...         # tensors that share the memory of the batch
    dataset = seqflow.torch.iterable(loader)     # for DataLoader(dataset, batch_size=None)
    layers = seqflow.torch.load_lstm(model, prefix="encoder.")

PyTorch itself is imported by the functions that make tensors, when they are called.
"""

from seqflow.torch.attention import block_diagonal_mask, cu_seqlens, flex_block_mask
from seqflow.torch.collation import collate
from seqflow.torch.datasets import iterable
from seqflow.torch.sequences import from_nested, from_packed_sequence, to_nested, to_packed_sequence
from seqflow.torch.tensors import from_tensors, to_tensors
from seqflow.torch.weights import (
    BidirectionalGRUWeights,
    BidirectionalLSTMWeights,
    BidirectionalRNNWeights,
    EmbeddingWeights,
    GRUWeights,
    LinearWeights,
    LSTMWeights,
    RNNWeights,
    load_embedding,
    load_gru,
    load_linear,
    load_lstm,
    load_rnn,
)

__all__ = [
    "BidirectionalGRUWeights",
    "BidirectionalLSTMWeights",
    "BidirectionalRNNWeights",
    "EmbeddingWeights",
    "GRUWeights",
    "LSTMWeights",
    "LinearWeights",
    "RNNWeights",
    "block_diagonal_mask",
    "collate",
    "cu_seqlens",
    "flex_block_mask",
    "from_nested",
    "from_packed_sequence",
    "from_tensors",
    "iterable",
    "load_embedding",
    "load_gru",
    "load_linear",
    "load_lstm",
    "load_rnn",
    "to_nested",
    "to_packed_sequence",
    "to_tensors",
]
