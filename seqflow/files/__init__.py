"""Where the bytes of files lie, on this machine or in an object store: a few verbs for each reader and writer."""
