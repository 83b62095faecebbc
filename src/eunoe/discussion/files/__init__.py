"""A discussion as files of other programs, read and written."""
