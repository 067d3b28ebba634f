"""What families of ops share: slices of rows, bounds for inference, scalars, axes, strings, random bits. No ops."""
