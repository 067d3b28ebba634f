"""Files whose blocks are known before they are read: a module for each format, and their suffixes."""
