"""Batches for Ray Data: a loader or a job as a Ray dataset.

    dataset = seqflow.ray.dataset(sf.Loader("docs/*.parquet", net="…", batch=sf.Packed(2048)))
    for batch in dataset.iter_batches(batch_size=1024): ...

Ray itself is imported when `dataset` is called.
"""

from seqflow.ray.datasets import dataset, stats

__all__ = ["dataset", "stats"]
