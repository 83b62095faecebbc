"""The memory key of a statement: what it is about, if that has one value at a time.

A later statement with the same key takes the place of the earlier one. The patterns are in
`patterns/memory_keys.toml`.
"""

import re
from functools import cache
from typing import Final

from eunoe.form.data_files import PatternFile
from eunoe.text.normalize import fold

_MAX_CHARACTERS: Final = 1000
_MAX_WORDS: Final = 16
"""A sentence with more words says more than one thing."""
_PATTERNS: Final = PatternFile("memory_keys")


def find_memory_key(speaker: str, sentence: str, question: str = "") -> str:
    """Return the key of a statement, such as `anna/home`; "" if it has none. `question` is what it answers.

    >>> find_memory_key("Anna", "I moved to Rome in May."), find_memory_key("Anna", "My favourite colour is green.")
    ('anna/home', 'anna/favourite colour')
    >>> find_memory_key("Anna", "My sister is sick."), find_memory_key("Anna", "Rome.", "Where do you live?")
    ('', 'anna/home')
    """
    text = " ".join(_PATTERNS.quotation.sub(" ", sentence[: _MAX_CHARACTERS + 1].replace("’", "'")).split())
    if len(text) > _MAX_CHARACTERS or _PATTERNS.unsure.search(text):
        return ""
    who, attribute = ("", _answered_attribute(text, question)) if question else _stated_attribute(text)
    owner = _key_name(speaker) if attribute else ""
    return f"{_key_name(who) if who else owner}/{attribute}" if owner else ""


def split_clauses(sentence: str) -> list[str]:
    """Split a sentence where the speaker begins anew, as in "I'm Tom, I live in Rome and my cat is called Bo"."""
    return [part for part in _PATTERNS.clause_break.split(sentence) if part.strip()]


def _key_name(name: str) -> str:
    return " ".join(fold(name).replace("/", " ").split())


def _answered_attribute(text: str, question: str) -> str:
    if _says_more(text) or _PATTERNS.no_answer.match(text):
        return ""
    plain = question.replace("’", "'")
    for row in _PATTERNS.tables["questions"]:
        if match := row.pattern.search(plain):
            return row.name.format(*map(fold, match.groups()))
    return ""


def _stated_attribute(text: str) -> tuple[str, str]:
    """Whom a statement is about, "" for the speaker, and what of them."""
    if relative := _PATTERNS.age_of_relative.fullmatch(text):
        return (relative["who"], "age") if relative["who"] else ("", f"{fold(relative['kin'])}'s age")
    if _PATTERNS.answer_language.fullmatch(text):
        return "", "language of answers"
    attitude = _attitude(text)
    if attitude or _says_more(text):
        return "", attitude
    if birthday := _PATTERNS.birthday.search(text):
        return birthday["who"], "birthday"
    for row in _PATTERNS.tables["others"]:
        if other := row.pattern.match(text):
            return other["who"], row.name
    return "", _own_attribute(text)


def _says_more(text: str) -> bool:
    """Whether a sentence holds more than one thing: a new value of the one must not take the other away."""
    return text.count(" ") >= _MAX_WORDS or bool(_PATTERNS.second_statement.search(_PATTERNS.first_words.sub("", text)))


def _attitude(text: str) -> str:
    """What somebody likes, takes or is allergic to: one attribute for the thing, whether they do or not."""
    for row in _PATTERNS.tables["attitudes"]:
        if match := row.pattern.fullmatch(text):
            thing = _PATTERNS.article.sub("", fold(match[match.lastgroup or "what"])).split()
            if not thing or thing[0] in _PATTERNS.words["not_things"]:
                return ""
            return f"{row.name} {' '.join(map(_singular, thing))}"
    return ""


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _own_attribute(text: str) -> str:
    for row in _PATTERNS.tables["attributes"]:
        if row.pattern.search(text):
            return row.name
    for row in _PATTERNS.tables["named"]:
        if match := row.pattern.search(text):
            name = f"favourite {fold(match['what'])}" if row.name == "favourite" else _spell_alike(match["what"])
            return _synonym(name) if _has_one_value(name, match["value"]) else ""
    return ""


def _spell_alike(what: str) -> str:
    """The words after "my", with one spelling for what means the same."""
    words = fold(what).split()
    if words[0] in _PATTERNS.words["dropped"] and len(words) > 1:
        words = words[1:]
    return " ".join(map(_synonym, words))


def _synonym(name: str) -> str:
    return str(_PATTERNS.content["synonyms"].get(name, name))


def _has_one_value(attribute: str, value: str) -> bool:
    """Whether an attribute can have one value at a time, and this is a value of its kind."""
    words = attribute.split()
    if words[0] in _PATTERNS.words["single_value"]:
        return not _PATTERNS.no_value.match(value)
    form = _value_forms().get(" ".join(words[-2:])) or _value_forms().get(words[-1])
    return bool(form and form.match(value))


@cache
def _value_forms() -> dict[str, re.Pattern[str]]:
    return {row.name: row.pattern for row in _PATTERNS.tables["values"]}
