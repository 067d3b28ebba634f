"""Tables and datasets of many files: those of pyarrow and other packages, Iceberg, Delta Lake, Lance, Hive."""
