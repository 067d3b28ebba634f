"""Scripts that write `docs/ops/`, `docs/llms.txt` and stubs from the registry; not part of the package."""
