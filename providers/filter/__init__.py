"""Filters of rows: conditions as text or Arrow expressions, and blocks with the rows that they keep."""
