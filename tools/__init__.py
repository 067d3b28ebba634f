"""Scripts that write `docs/ops/` and stubs from the registry; not part of the package."""
