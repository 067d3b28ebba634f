"""Fuzzers. Each has `run(seed, seconds)`, which prints counts and keeps what it finds."""
