"""Identity: everything that decides an output, as JSON that is stored beside it and compared later."""
