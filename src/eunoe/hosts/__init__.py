"""Adapters to frameworks, and ways in for what other systems have kept. Each needs only its own framework."""
