"""The running of an epoch: windows read ahead, nets applied, batches made by workers, bad rows left out."""
