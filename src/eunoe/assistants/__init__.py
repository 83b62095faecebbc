"""Assistants: written into their settings, listened to by their hooks, and looked after."""
