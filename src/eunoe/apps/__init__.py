"""Applications: each uses the memory alone."""
