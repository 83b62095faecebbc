"""The rules over what is stored: what is a duplicate, what supersedes what, what forgetting reaches."""
