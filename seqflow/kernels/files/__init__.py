"""Kernels on the bytes of files: lines, chunks of Arrow data, footers of Parquet."""
