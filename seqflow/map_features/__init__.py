"""Features of a map column as tensors of a record, and their pooled embeddings."""

from seqflow.map_features.pooling import pool_features
from seqflow.map_features.splitting import features

__all__ = ["features", "pool_features"]
