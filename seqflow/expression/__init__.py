"""Arithmetic over arrays, compiled once from text."""
