"""Files with a row in each line: JSON lines and CSV, read in blocks of whole lines."""
