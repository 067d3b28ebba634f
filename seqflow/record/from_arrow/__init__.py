"""From Arrow to named tensors."""
