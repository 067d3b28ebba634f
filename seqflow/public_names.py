"""The public names, and the modules that they are in."""

ROOMS = {
    "arrow_function": "arrow_function",
    "errors": "ExpressionError JobError LodError NetError OpError ProviderError SeqflowError ShapeError",
    "executor": "run",
    "expression": "Expression",
    "kernels": "info",
    "loader": "Along BadRows Balance Buckets Loader Mix Packed Pad Prefetch Ranks Rows Schedule Shuffle TokenBudget "
    "verdict",
    "loader.from_rows": "from_rows",
    "lod": "LoD",
    "map_features": "features pool_features",
    "net": "Net",
    "providers": "Arrow BadFiles Csv JsonLines Megatron Numpy Parquet Tar Text open",
    "record.from_arrow.columns": "from_arrow",
    "record.to_arrow": "to_arrow",
    "registry": "op",
    "sequence": "Sequence",
    "serving.client": "served",
    "serving.server": "serve",
    "shape": "Dimension PartialShape",
    "tensor": "TensorSlice TensorSpec",
    "vocabulary": "Vocabulary",
}
"""The public names of each module. They are imported at first use, like the packages below: a program that only calls
ops does not import Arrow, and `import seqflow` alone imports neither Arrow nor NumPy. Type checkers read them in
`__init__.pyi`, which `python -m tools.stubs` writes."""
PACKAGES = ("auto", "ops", "providers", "registry")
OPTIONAL_PACKAGES = ("executor", "jax", "kernels", "ray", "torch")
"""Modules that `dir` omits: few programs need them, or they need another library. The house's own imports ask for an
attribute of the package first, and the error for a name that is not here searches all ops."""
