"""The order of rows: blocks, windows and streams, what they depend on, and the index of their lengths."""
