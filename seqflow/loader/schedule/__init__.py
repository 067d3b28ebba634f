"""The schedule of an epoch: windows, their order, streams, ranks, the lengths index, and where a loader is."""
