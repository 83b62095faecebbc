"""The presets that streams start from: a conversation, a user, and what an agent has learned on a subject."""

from collections.abc import Mapping

from eunoe.model.settings import Settings

PRESETS: Mapping[str, Settings] = {
    "session": Settings(
        owner=("agent", "user", "session"),
        extraction_prompt=(
            "What happened in this conversation: what was asked, decided, made and left open. It helps to follow the "
            "thread while the conversation lasts."
        ),
        observation_extraction_max=1,
        fact_extraction_min=1,
        fact_extraction_max=2,
        fact_max_words=50,
        consolidation_prompt=(
            "A summary of the conversation so far: its purpose, what was settled, what is still open, in the order it "
            "happened."
        ),
        consolidation_trigger=4,
        consolidated_max_words=500,
        fact_buffer_max=8,
    ),
    "user": Settings(
        owner=("agent", "user"),
        extraction_prompt=(
            "What is worth knowing about this user in later conversations: preferences, standing instructions, who "
            "they are, the people and things in their life, plans and dates. Not what only matters right now."
        ),
        extraction_fields=("observation",),
        observation_extraction_max=24,
        observation_max_words=40,
        consolidation_prompt=(
            "A portrait of the user for an assistant who meets them again: who they are, how they want to be treated, "
            "what they like and dislike, what they plan."
        ),
        consolidation_trigger=5,
        consolidated_max_words=400,
    ),
    "agent": Settings(
        owner=("agent", "shard"),
        extraction_prompt="What everyone who works with this agent should know. Nothing that is private to one user.",
        observation_extraction_max=2,
        observation_max_words=35,
        fact_extraction_max=3,
        fact_max_words=30,
        consolidation_prompt=(
            "What the agent has learned on this subject across its conversations, kept in order and up to date."
        ),
        consolidation_trigger=16,
        consolidated_max_words=1000,
        fact_buffer_max=100,
    ),
}
