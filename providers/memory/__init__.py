"""Rows that come from this process: tables, frames, Python values, streams, functions and queries."""
