"""Identity: what decides an output, as plain data that is kept beside it and compared later."""
