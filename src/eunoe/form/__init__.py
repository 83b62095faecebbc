"""The way in: what was said becomes what is known."""
