"""Ways in for what other systems have kept."""
