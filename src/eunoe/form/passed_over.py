"""Why nothing was learned from a turn, in words."""

from typing import Final

from eunoe.form.statements import MIN_SCORE, is_question, is_secret, read_statement
from eunoe.model.turn import TOOL_ROLES, Turn
from eunoe.text.sentences import split_sentences

_TOOL: Final = "it is what a tool gave back, not what somebody said"
_SECRET: Final = "it speaks of a secret, which stays in the log alone"
_QUESTION: Final = "it only asks"
_SMALL_TALK: Final = "it states nothing: a greeting, a reaction or the like"
_TOO_LITTLE: Final = "what it says is not worth enough"
_NO_ROOM: Final = "other messages were worth more, and a stream takes only so many"


def explain_passed_over(turn: Turn) -> str:
    """The reason why a turn was passed over when it was read without an LLM.

    >>> explain_passed_over(Turn("1", "What time is it?"))
    'it only asks'
    """
    if turn.role.lower() in TOOL_ROLES:
        return _TOOL
    sentences = split_sentences(turn.text)
    if any(map(is_secret, sentences)):
        return _SECRET
    statements = [statement for statement in map(read_statement, sentences) if statement]
    if not statements:
        return _QUESTION if sentences and is_question(sentences[-1]) else _SMALL_TALK
    return _NO_ROOM if any(statement.score >= MIN_SCORE for statement in statements) else _TOO_LITTLE
