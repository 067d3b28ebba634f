"""Scripts that write `docs/ops/`, pictures, `docs/llms.txt` and stubs from the registry; not part of the package."""
