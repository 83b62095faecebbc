"""Workflows: nodes in JSON that read and make memories and ask language models."""
