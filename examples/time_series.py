"""Time series: readings of sensors of different lengths, normalised, smoothed, and cut into windows.

python examples/time_series.py
"""

import numpy as np
import pyarrow as pa

import seqflow as sf

random = np.random.default_rng(0)
readings = [random.normal(20, 3, length).round(1).tolist() for length in (10, 0, 7, 23)]
table = pa.table({"sensor": ["a", "b", "c", "d"], "value": readings})
prepare = """
mean = lengths_mean(value.values, value.lengths)
centred = value.values - expand(mean, value.lengths)
smooth = reduce_mean(context_windows(centred, value.lengths, before=2, after=0), axes=[1])
window.values, window.lengths, pieces = split_sequences(smooth, value.lengths, chunk=8, stride=4)
return window.values, window.lengths
"""
loader = sf.Loader(table, columns=["value"], prepare=prepare, batch=4, pad={"window": sf.Pad(max_length=8)})
first, *_ = batches = [*loader]
windows = sum(batch.num_rows for batch in batches)
assert first["window"].shape == (4, 8)
print(f"{windows} windows of up to 8 readings; the first, and where it has data:")
print(first["window"][0].round(2), first["window.mask"][0])
