"""Pictures as SVG: sequences in sequences, packed rows, shares, graphs; and tables.

They need no script and no font of their own.
"""
