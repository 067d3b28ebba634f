"""`python -m seqflow`: the command."""

from seqflow.cli import main

if __name__ == "__main__":
    main()
