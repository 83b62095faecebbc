"""The tables of a server's own records, one script for each group of them. A script that was released never changes."""
