"""Paths and shapes that other programs call already."""
