"""Identity: all facts that decide an output, as JSON that is stored next to it and compared later."""
