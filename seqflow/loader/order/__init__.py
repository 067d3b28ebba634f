"""The order of rows: blocks, windows and streams, the settings that decide them, and the index of their lengths."""
