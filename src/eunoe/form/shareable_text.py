"""Which sentences everybody may read: of things, not of people, and without a secret, an address or an order."""

from collections.abc import Container
from typing import Final

from eunoe.form.data_files import PatternFile
from eunoe.form.statements import is_instruction, is_private, is_secret
from eunoe.text.analyzer import stem
from eunoe.text.languages import LANGUAGES, detect_language, is_stop_word
from eunoe.text.normalize import fold

_GERMAN: Final = LANGUAGES.index("german")
"""Where every noun has a capital."""
_PATTERNS: Final = PatternFile("sharing")


def is_shareable(sentence: str, subject: Container[str] = ()) -> bool:
    """Whether a sentence may be shared with every user; in doubt it may not.

    The first word may be a name, unless its stem or the next one's belongs to the subject.
    """
    if is_private(sentence) or is_secret(sentence) or is_instruction(sentence):
        return False
    lowered = " ".join(sentence.lower().replace("’", "'").split())
    kept_back = (_PATTERNS.contact, _PATTERNS.confidence, _PATTERNS.order)
    return not any(pattern.search(lowered) for pattern in kept_back) and not _names_somebody(sentence, subject)


def _names_somebody(sentence: str, subject: Container[str]) -> bool:
    spoken = detect_language(sentence)
    pairs = _PATTERNS.first_of_two_names.findall(sentence)
    if _PATTERNS.title.search(sentence) or any(not is_stop_word(fold(word), spoken) for word in pairs):
        return True
    first = _PATTERNS.acting_first_word.match(sentence)
    is_named = first is not None and not is_stop_word(fold(first[1]), spoken)
    if first and is_named and not any(stem(fold(word)) in subject for word in first.groups("")):
        return True
    if spoken == _GERMAN:
        return bool(_PATTERNS.acting_german_name.search(sentence))
    return any(not _PATTERNS.harmless_capital.fullmatch(word) for word in _PATTERNS.capitalized.findall(sentence))
