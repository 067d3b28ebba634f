"""Lexer, precedence parser and printer of errors, shared by all small languages; each language is a dialect."""
