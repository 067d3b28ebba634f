"""Fuzzers: each runs mutated input for some time, prints counts, and keeps what it finds in `fuzz/found`."""
