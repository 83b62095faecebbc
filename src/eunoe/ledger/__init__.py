"""The rules of writing: what is new, what is known already, what closes what, and what must not come back."""
