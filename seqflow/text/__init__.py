"""Small languages: one lexer, one precedence parser, one printer of errors; each language is a dialect."""
