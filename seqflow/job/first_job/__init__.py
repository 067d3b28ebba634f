"""The job that `seqflow init` writes: what the first rows of a source show, and the settings that fit them."""
