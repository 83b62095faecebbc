"""Nouns as JSON: what the command line prints, what the server sends and what a client reads."""
