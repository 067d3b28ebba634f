"""Outputs in object stores: a log of numbered objects, a spool of this machine, and uploads under final names."""
