"""Batch plans: which rows of a window make a batch, decided on lengths alone, and the gathering of a batch."""
