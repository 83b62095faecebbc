"""What a speaker says of themselves, as a statement about them: where that is safe, and nowhere else.

The forms of verbs are in `words/third_person.txt`. Whatever is not among them stays a quotation.
"""

import re
from typing import Final

from eunoe.text.languages import ENGLISH, is_stop_word
from eunoe.text.word_files import load_table, load_words, word_set

_QUOTATION: Final = re.compile(r"(?P<name>[^\W_][\w'’.-]*(?: [^\W\d_][\w'’.-]*){0,2}): (?P<words>[^\n]{1,300})")
_ADVERBS: Final = "(?:(?:also|always|currently|finally|just|never|now|often|only|really|recently|still|usually) )?"
_OWN: Final = re.compile(rf"(?P<subject>I(?:'\w+)?) (?P<adverb>{_ADVERBS})(?P<rest>.+)")
_BELONGINGS: Final = re.compile(
    r"My (?P<what>(?:[\w'-]+ ){1,4}?)(?P<verb>is|are|was|were|has|have|had|lives?|works?|lik(?:es|e)|loves?|moved|died|"
    r"plays?|goes|comes?|came|started|turned|turns) (?P<rest>.+)"
)
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_BREAK: Final = re.compile(r"[?\"“”„«»`;…]|[.!。！] ?\S|\((?:asked|until)\b|\bn't I\b")  # noqa: RUF001
_SECOND_VERB: Final = re.compile(
    r",(?! [A-ZÀ-Þ])|\b(?:and|or|but|then|so)\b(?! (?:an?|the|two|three|four|five|six|no|some|\d+)\b)"
)
"""What another verb of the speaker may follow, which would have to change as well."""
_MODAL_VERBS: Final = frozenset(["will"])
"""Verbs after which another one stays as it is."""
_MAX_NAME_WORDS: Final = 3
_INDEFINITE: Final = word_set("anybody anyone everybody everyone nobody none somebody someone who not")
_THIRD: Final = load_table("third_person")
_FIRST: Final = {third: first for first, third in reversed(_THIRD.items())}
_BOUND: Final = load_words("not_third_person")


def third_person(quotation: str) -> str:
    """Put what a speaker says of themselves as a statement about them; "" where it may not mean the same.

    >>> third_person("Anna: I'm allergic to peanuts."), third_person("Anna: My sister Eva lives in Rome.")
    ('Anna is allergic to peanuts.', "Anna's sister Eva lives in Rome.")
    >>> third_person("Anna: I live in Rome and work from home."), third_person("Anna: We moved to Rome.")
    ('', '')
    """
    match = _QUOTATION.fullmatch(quotation.replace("’", "'"))
    if match is None or _BREAK.search(match["words"]) or not _is_name(match["name"]):
        return ""
    name, words = match["name"], match["words"]
    if own := _OWN.fullmatch(words):
        return _state_own(name, own)
    belongings = _BELONGINGS.fullmatch(words)
    return f"{name}'s {words[3:]}" if belongings and not _is_bound(words[3:]) else ""


def quotation_of(statement: str) -> str:
    """The quotation that a statement was made from, in its plainest form; "" if it was made from none.

    >>> quotation_of("Anna still lives in Rome."), quotation_of("It rained.")
    ('Anna: I still live in Rome.', '')
    """
    words = statement.split(" ")
    for end in range(1, min(_MAX_NAME_WORDS + 1, len(words))):
        name, rest = " ".join(words[:end]), words[end:]
        belongings = " ".join([f"{name[:-2]}: My", *rest]) if name.endswith("'s") else ""
        own = (_with_verb(name, rest, place) for place in range(min(2, len(rest))))
        for quotation in filter(None, (belongings, *own)):
            if third_person(quotation) == statement:
                return quotation
    return ""


def _with_verb(name: str, words: list[str], place: int) -> str:
    """A quotation in which the word at a place is a verb of the first person."""
    first = _FIRST.get(words[place], "").removeprefix("I ")
    return " ".join([f"{name}: I", *words[:place], first, *words[place + 1 :]]) if first else ""


def _state_own(name: str, own: re.Match[str]) -> str:
    """What is said with "I", with the verb in its other form."""
    subject, adverb, (first, _, rest) = own["subject"], own["adverb"], own["rest"].partition(" ")
    if subject == "I":
        verb, third = first, _THIRD.get(f"I {first}", "")
        stated = f"{adverb}{third} {rest}"
    else:
        verb, third, rest = "", _THIRD.get(subject, ""), own["rest"]
        stated = f"{third} {adverb}{rest}"
    is_changed = third != verb and third not in _MODAL_VERBS
    if not third or not rest or _is_bound(rest) or (is_changed and _SECOND_VERB.search(rest)):
        return ""
    return f"{name} {stated}"


def _is_bound(words: str) -> bool:
    return not _BOUND.isdisjoint(_WORD.findall(words.lower()))


def _is_name(name: str) -> bool:
    """Whether a statement about it speaks of one person; "Nobody" and "The others" are called so by chance."""
    return not any(is_stop_word(word, ENGLISH) or word in _INDEFINITE for word in name.lower().split())
