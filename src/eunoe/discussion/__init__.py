"""Discussions: the memory of a long chat, made by slow creators and read by fast retrievers."""
