"""The table of an epoch, and all that looks its rows up."""
