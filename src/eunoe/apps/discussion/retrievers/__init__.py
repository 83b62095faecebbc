"""Retrievers: what reads a discussion's memories; none of them writes."""
