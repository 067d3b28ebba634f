"""The run of an epoch: windows read ahead, nets applied, batches made by workers, bad rows omitted."""
