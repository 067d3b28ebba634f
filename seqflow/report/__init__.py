"""One HTML page, without external files, about a source or the batches of a job."""
