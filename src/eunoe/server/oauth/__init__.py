"""OAuth 2.1 for hosted assistants: a person lets a client use the memory as one of their keys may, or with less."""
