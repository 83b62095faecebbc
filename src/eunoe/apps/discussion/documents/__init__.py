"""Documents of a discussion: the rolling summary, condensed memories, the state document."""
