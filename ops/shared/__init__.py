"""Parts shared by families of ops: slices of rows, scalars, axes, strings, random bits. It declares no ops."""
