"""The table of an epoch, and lookups of its rows."""
