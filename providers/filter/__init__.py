"""Which rows of a source are kept: conditions as text or Arrow expressions, and blocks with the rows they keep."""
