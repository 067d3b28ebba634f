"""Ops in jax: `seqflow.jax.ops`."""
