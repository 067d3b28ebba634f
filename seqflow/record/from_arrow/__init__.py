"""Convert Arrow data to named tensors."""
