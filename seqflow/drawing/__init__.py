"""Pictures as SVG: sequences in sequences, packed rows, shares. They need no script and no font of their own."""
