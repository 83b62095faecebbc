"""Which answers never take the place of a text: empty ones, those that lose or repeat too much, echoes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from eunoe.apps.discussion.authors import Author, Prompts
from eunoe.errors import LlmError, WorkflowError
from eunoe.memory import Memory
from eunoe.model.result import Lease
from eunoe.model.scope import Scope
from eunoe.text.normalize import fold
from eunoe.text.sentences import split_sentences

MIN_GUARDED_CHARACTERS: Final = 500
"""A shorter text may shrink as it likes."""
_MAX_GROWTH_CHARACTERS: Final = 4000
"""So much longer than all it was made from an answer may be."""
_MIN_ECHO_CHARACTERS: Final = 40
"""A shorter sentence of a prompt may stand in an answer by chance."""
_INPUT: Final = re.compile(r"\[\w+\]")
"""Where an input stands in a prompt."""
_MIN_REPEATED_WORDS: Final = 40
_MAX_REPETITION: Final = 10
"""An answer with more than so many words for each different one goes round in circles, unless what it was made from
does too."""


def write_guarded(author: Author, inputs: Mapping[str, str], *, before: str = "", least_share: float = 0.0) -> str:
    """Have an author write a text that takes the place of `before`; raise LlmError if it cannot be taken."""
    answer = author.write(inputs).strip()
    guard_answer(author, answer, " ".join(inputs.values()), before, least_share)
    return answer


def guard_answer(author: Author, answer: str, given: str, before: str = "", least_share: float = 0.0) -> None:
    """Raise LlmError if an answer that was made from what was given cannot be taken in the place of `before`."""
    if fault := find_fault(answer, given, before, least_share, author.prompts):
        raise LlmError(f"{author.name} gave an answer that cannot be used: {fault}")


def find_fault(answer: str, given: str, before: str, least_share: float, prompts: Prompts) -> str:
    """Say why an answer is not taken, in words that repeat none of it; empty if it is.

    >>> find_fault(" ", "Anna likes tea.", "", 0.5, Prompts("", ""))
    'it was empty'
    """
    if not any(map(str.isalnum, answer)):
        return "it was empty"
    if len(before) >= MIN_GUARDED_CHARACTERS and len(answer) < least_share * len(before):
        return f"it had {len(answer)} characters in place of {len(before)}"
    if len(answer) > len(given) + _MAX_GROWTH_CHARACTERS:
        return f"it had {len(answer)} characters, made from {len(given)}"
    if len(answer.split()) >= _MIN_REPEATED_WORDS and _repetition(answer) > max(_MAX_REPETITION, _repetition(given)):
        return "it repeated the same words over and over"
    if _repeats(answer, given, prompts):
        return "it repeated the prompt"
    return ""


def _repetition(text: str) -> float:
    """How many words a text has for each different one."""
    words = text.split()
    return len(words) / len(set(words)) if words else 0.0


def _repeats(answer: str, given: str, prompts: Prompts) -> bool:
    """Whether an answer has a sentence of the prompts that was not said."""
    parts = _INPUT.split(f"{prompts.system}\n{prompts.prompt}")
    sentences = [_even(sentence) for part in parts for sentence in split_sentences(part)]
    long = [sentence for sentence in sentences if len(sentence) >= _MIN_ECHO_CHARACTERS]
    written, said = _even(answer), _even(given)
    return any(sentence in written and sentence not in said for sentence in long)


def _even(text: str) -> str:
    """A text as echoes are compared."""
    return " ".join(fold(text).split())


@contextmanager
def attempt(memory: Memory, scope: Scope, lease: Lease) -> Iterator[None]:
    """Hold on to a lease while a text is written. A failure is noted with it, and the work is due again after a pause;
    where somebody else changed something meanwhile, it is due at once."""
    try:
        with memory.leases.renewing(scope, lease):
            yield
    except (LlmError, WorkflowError) as error:
        memory.leases.fail(scope, lease, str(error))
        raise
    except BaseException:
        memory.leases.release(scope, lease)
        raise
