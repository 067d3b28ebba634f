"""Recurrent cells: their arguments, the steps forward, and the gradients."""
