"""What `python -m benchmarks` runs."""

SUITES = {
    "ops": "Ops", "sparse": "Pooled embeddings", "ids": "Ids", "vocabulary": "Vocabularies",
    "expression": "Expressions", "rnn": "Recurrent cells and attention",
    "torch_ops": "Training steps in PyTorch", "tokenizing": "Tokens", "loaders": "Loaders", "pack_source": "Jobs",
    "filters": "Filters", "lines": "Files of lines", "small_files": "Small files", "startup": "Starting",
}  # fmt: skip
"""The modules that have comparisons, with the headings of the page."""
