"""Kernels on the bytes of files: lines, fields of lines, chunks of Arrow data, footers of Parquet."""
