"""Creators: what makes a discussion's memories, chunk by chunk."""
