"""Which answers of an LLM are not taken as a summary: empty ones, refusals, echoes, and what loses too much."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from eunoe.form.content_words import content_words, covered_share, kept_share, language_or_script
from eunoe.form.data_files import load_prompt
from eunoe.form.summary_answer import PATTERNS, is_object, read_object
from eunoe.model.atom import Atom
from eunoe.text.scripts import SPACELESS
from eunoe.text.sentences import word_count

_MIN_COMPARED_WORDS: Final = 40
"""From so many words on a summary may not shrink to less than half, lose what it says, or go round in circles."""
_MIN_COVERED_SHARE: Final = 0.3
"""Share of an answer's content that the old summary and the observations must have. Free paraphrases in a dozen
languages have 0.38 and more of it, texts about something else 0.19 and less."""
_MIN_KEPT_SHARE: Final = 1 / 3
"""Share of what the old summary says that the new one must still say."""
_MAX_REPETITION: Final = 10
"""An answer with more than so many words for each different one goes round in circles."""
_MAX_CHARACTERS_PER_WORD: Final = 20
"""Three times the length of a word with its blank in the languages with the longest ones."""
_MAX_WORD_CHARACTERS: Final = 200
"""Longer than any word, and than most addresses of pages."""
_MAX_EXCESS: Final = 10
"""An answer of so many times the words that were asked for is not cut but refused."""
_MIN_TRANSLATED_SHARE: Final = 0.25
"""Words that a translation must have for each word that is translated; the terse have half."""
_MIN_ECHO_CHARACTERS: Final = 40
_MIN_CODE_CHARACTERS: Final = 4
"""Shorter numbers are written in many ways, and counted by whoever writes."""
_CODE: Final = re.compile(r"[^\W_]+")
_DIGIT_GROUP: Final = re.compile(r"(?<=\d)[,.'\u00a0\u202f ](?=\d{3}(?!\d))")
_SPACELESS: Final = re.compile(rf"[{SPACELESS}]")


@dataclass(frozen=True, slots=True)
class SummaryTask:
    """What a summary is to be written from."""

    purpose: str
    max_words: int
    summary: str
    observations: Sequence[Atom]
    untrue: Sequence[Atom]
    """What the summary holds and was superseded."""
    now: datetime
    absorbed: Sequence[Atom] = ()
    """What the summary absorbed before and still holds."""

    @property
    def sources(self) -> list[str]:
        """All that an answer may take its words from."""
        return [self.summary, *(f"{format_time(atom)} {atom.text}" for atom in (*self.observations, *self.untrue))]


def find_fault(text: str, task: SummaryTask) -> str:
    """Say why an answer is not taken, in words that repeat none of it; "" if it is."""
    return (
        _find_no_text(text)
        or _find_excess(text, task)
        or _find_echo(text, task)
        or _find_repetition(text)
        or _find_shrinking(text, task)
        or _find_unsupported_words(text, task)
        or _find_unsupported_codes(text, task)
        or _find_loss(text, task)
    )


def format_time(atom: Atom) -> str:
    moment = atom.time or atom.recorded
    return f"{moment:%Y-%m-%d %H:%M}" if moment else ""


def _find_no_text(text: str) -> str:
    if not any(map(str.isalnum, text)):
        return "it was empty"
    if PATTERNS.refusal.match(text):
        return "it was a refusal and no summary"
    if is_object(text) and read_object(text) is None:
        return "it was JSON that breaks off; write the text of the summary alone"
    return ""


def _find_excess(text: str, task: SummaryTask) -> str:
    size = word_count(text)
    if size > _MAX_EXCESS * task.max_words:
        return f"it had {size} words; the limit is {task.max_words}"
    if len(text) > _MAX_CHARACTERS_PER_WORD * max(size, task.max_words):
        return f"it had {len(text)} characters for {size} words"
    known = " ".join(task.sources)
    longest = max((word for word in text.split() if not _SPACELESS.search(word)), key=len, default="")
    is_odd = len(longest) > _MAX_WORD_CHARACTERS and longest not in known
    return f"it had a word of {len(longest)} characters" if is_odd else ""


def _find_echo(text: str, task: SummaryTask) -> str:
    plain, known = (" ".join(part.split()) for part in (text, " ".join(task.sources)))
    asked = load_prompt("summary").system.splitlines()
    lines = [line.removeprefix("- ").strip() for line in asked if len(line) > _MIN_ECHO_CHARACTERS]
    is_echo = any(line in plain and line not in known for line in lines) or "word_limit" in (read_object(text) or ())
    return "it repeated the question; write the summary itself" if is_echo else ""


def _find_repetition(text: str) -> str:
    size, different = word_count(text), len(content_words(text))
    if size < _MIN_COMPARED_WORDS or _MAX_REPETITION * different >= size:
        return ""
    return f"it repeated the same words over and over, {different} in a text of {size}"


def _find_shrinking(text: str, task: SummaryTask) -> str:
    before = word_count(task.summary)
    # What is no longer true may go, in whatever words the summary has it.
    still_true = before - 2 * sum(word_count(atom.text) for atom in task.untrue)
    if before < _MIN_COMPARED_WORDS or 2 * word_count(text) >= min(still_true, task.max_words):
        return ""
    return f"it had {word_count(text)} words where the summary had {before}: keep what still holds"


def _find_unsupported_words(text: str, task: SummaryTask) -> str:
    if is_translated(text, " ".join(task.sources), task):
        needed = _MIN_TRANSLATED_SHARE * min(task.max_words, sum(word_count(atom.text) for atom in task.observations))
        return "" if word_count(text) >= needed else "it was shorter than a translation can be"
    share = covered_share(text, task.sources)
    if share >= _MIN_COVERED_SHARE:
        return ""
    return f"of its words only {share:.0%} are in the summary and the observations: keep to them and to their language"


def _find_unsupported_codes(text: str, task: SummaryTask) -> str:
    """A number or code that stands in nothing the model was shown comes from elsewhere, perhaps from another scope."""
    known = _bare_digits(" ".join(task.sources).casefold())
    codes = [code for code in _CODE.findall(_bare_digits(text.casefold())) if len(code) >= _MIN_CODE_CHARACTERS]
    unknown = sum(code not in known for code in codes if any(map(str.isdigit, code)))
    return f"{unknown} of its numbers or codes are not in the summary and the observations" if unknown else ""


def _bare_digits(text: str) -> str:
    """The text without what divides the digits of a number, as in 1,000 and 1 000."""
    return _DIGIT_GROUP.sub("", text)


def _find_loss(text: str, task: SummaryTask) -> str:
    before = word_count(task.summary)
    if before < _MIN_COMPARED_WORDS or is_translated(text, task.summary, task):
        return ""
    # Under a limit that is lower than what there was, less can be kept.
    needed = _MIN_KEPT_SHARE * min(1.0, task.max_words / before)
    share = kept_share(task.summary, [atom.text for atom in task.untrue], text)
    return f"it kept only {share:.0%} of what the summary says: keep what still holds" if share < needed else ""


def is_translated(text: str, other: str, task: SummaryTask) -> bool:
    """Whether the words cannot be compared, because the purpose asks for another language."""
    is_asked_for = bool(PATTERNS.language_name.search(task.purpose))
    return is_asked_for and language_or_script(text) != language_or_script(other)
