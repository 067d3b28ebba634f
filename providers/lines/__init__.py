"""Files with a row in each line: JSON lines, CSV, libsvm and Criteo, and how blocks of whole lines are read."""
