"""Chunks: where a discussion is cut, which chunks are due, and how one is made under a lease."""
