"""Writes `docs/ops/`, its pictures, `docs/llms.txt` and the type stubs from the registry; not part of the package."""
