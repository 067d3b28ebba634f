"""Tables and datasets of many files: pyarrow's and other packages', Iceberg, Delta Lake, Lance, Hive."""
