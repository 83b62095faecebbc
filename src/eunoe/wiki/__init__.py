"""A wiki for a repository, written by agents that remember."""
