"""Files whose blocks are known before they are read, a module for each format, and which suffix is which format."""
