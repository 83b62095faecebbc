"""Export and import: JSON Lines, one memory a line, nothing lost and nothing doubled."""
