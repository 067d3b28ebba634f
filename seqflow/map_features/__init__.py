"""Features of a map column, and pooling them: functions of whole records."""

from seqflow.map_features.pooling import pool_features
from seqflow.map_features.splitting import features

__all__ = ["features", "pool_features"]
