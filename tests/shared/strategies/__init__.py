"""Hypothesis strategies for the inputs and attributes of ops."""
