"""Files with a row in each line: JSON lines, CSV, libsvm and Criteo, read in blocks of whole lines."""
