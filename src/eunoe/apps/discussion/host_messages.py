"""The sentences that WilmerAI gives where there is nothing to give, for workflows that test for them."""

from __future__ import annotations

from typing import Final

NO_ID: Final = "Cannot perform VectorMemorySearch without a discussionId."
NO_MATCH: Final = "No relevant memories found in the vector database for the given keywords."
NO_MEMORIES: Final = "No memories have been generated yet"
NO_SUMMARY: Final = "There is not yet a summary file"
