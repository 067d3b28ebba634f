"""Fuzzers: hostile input by the million. Each module has `run(seed, seconds)`, which prints counts and keeps findings."""
