"""Which names mean the same: a short one and the full one, with a title and without, with initials and without."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from eunoe.text.entities import usual_key
from eunoe.text.names import LINKS, PERSON_TITLES
from eunoe.text.word_files import word_set

_CONNECTIVES: Final = word_set("and y und et in on at to for")
_LEAST_ACRONYM: Final = 3
_MAX_FREQUENCY: Final = 4
"""So many times as many passages have a first name alone as its full name, at most."""


def find_full_names(names: Iterable[str]) -> dict[str, str]:
    """Return the full names that other names in the same text stand for, all as entities are compared.

    >>> full = find_full_names(["dr robert j oppenheimer", "oppenheimer", "robert oppenheimer", "postgres"])
    >>> sorted(set(full.values()))
    ['postgresql', 'robert j oppenheimer']
    """
    usual = {name: usual_key(without_title(name)) for name in names}
    longer = _with_initials(usual.values())
    own = {name: longer.get(key, key) for name, key in usual.items()}
    short = _by_word(set(own.values())) | _by_acronym(own.values())
    return short | {name: full for name, key in own.items() if (full := short.get(key, key)) != name}


def without_title(name: str) -> str:
    """Return a name of several words without the titles in front of it.

    >>> without_title("prof dr anna meyer"), without_title("dr meyer")
    ('anna meyer', 'dr meyer')
    """
    words = name.split()
    if not LINKS.isdisjoint(words) or not name[-1:].isalpha():
        return name
    while len(words) > 2 and words[0] in PERSON_TITLES:
        del words[0]
    return " ".join(words)


def _is_titled(name: str) -> bool:
    words = name.split()
    return len(words) == 2 and words[0] in PERSON_TITLES


def without_initials(name: str) -> str:
    """Return a name without single letters, where two words or more are left.

    >>> without_initials("robert j oppenheimer"), without_initials("j r r tolkien")
    ('robert oppenheimer', 'j r r tolkien')
    """
    words = [word for word in name.split() if len(word) > 1]
    return " ".join(words) if len(words) > 1 else name


def _with_initials(names: Iterable[str]) -> dict[str, str]:
    """Names with initials by the same without them, where there is one only."""
    owners: dict[str, set[str]] = {}
    for name in names:
        short = without_initials(name)
        if short != name:
            owners.setdefault(short, set()).add(name)
    return {short: own.pop() for short, own in owners.items() if len(own) == 1}


def _by_word(names: Collection[str]) -> dict[str, str]:
    """Full names by their first and last words, where only one name has the word, or several that hold the same one:
    a person is named in full once, and then perhaps with a title."""
    owners: dict[str, set[str]] = {}
    for name in dict.fromkeys(names):
        words = name.split()
        if (
            not _is_titled(name)
            and len(words) > 1
            and not words[-1].isdecimal()
            and not _CONNECTIVES.intersection(words)
        ):
            for word in {words[0], words[-1]}:
                owners.setdefault(word, set()).add(name)
    shortest = {word: min(own, key=lambda name: (len(name), name)) for word, own in owners.items()}
    full = {word: short for word, short in shortest.items() if all(short in name for name in owners[word])}
    one_title = {word: own.pop() for word, own in _titled_by_surname(names).items() if len(own) == 1}
    full |= {name: full[word] for word, name in one_title.items() if word in full}
    return full | {word: name for word, name in one_title.items() if word not in owners}


def _by_acronym(names: Iterable[str]) -> dict[str, str]:
    """Full names by their first letters, where a text has both and no other name has the same."""
    known = set(names)
    owners: dict[str, set[str]] = {}
    for name in known:
        letters = "".join(word[0] for word in name.split() if word not in _CONNECTIVES and word != "of")
        if len(letters) >= _LEAST_ACRONYM and letters in known:
            owners.setdefault(letters, set()).add(name)
    return {letters: own.pop() for letters, own in owners.items() if len(own) == 1}


def group_names(counts: Mapping[str, int], may_be_person: Callable[[str], bool]) -> dict[str, str]:
    """Return the fullest name for each that means the same as another, all as entities are compared.

    A surname or a first name alone means the one person of that name; where there are two, it means neither. Nor does
    a first name that is far more frequent: it may be a place or a thing.

    >>> counts = {"robert j oppenheimer": 1, "oppenheimer": 9, "anna meyer": 1, "tom meyer": 1, "meyer": 1}
    >>> counts |= {"memory write": 1, "write": 1}
    >>> group_names(counts, lambda name: name != "memory write")
    {'oppenheimer': 'robert j oppenheimer'}
    """
    people = [name for name in counts if _is_full_name(name) and may_be_person(name)]
    same = {short: full for short, full in _with_initials(people).items() if short in counts}
    owners: dict[str, set[str]] = {}
    for name in people:
        words = without_initials(name).split()
        for word in {words[0], words[-1]}:
            owners.setdefault(word, set()).add(same.get(name, name))
    for word, titled in _titled_by_surname(counts).items():
        if len(titled) == 1 and len(owners.get(word, ())) == 1:
            same |= dict.fromkeys(titled, min(owners[word]))
        else:
            owners.setdefault(word, set()).update(titled)
    only = {word: min(own) for word, own in owners.items() if len(own) == 1 and word in counts}
    return same | {
        word: name for word, name in only.items()
        if name.endswith(word) or counts[word] <= _MAX_FREQUENCY * counts[name]
    }  # fmt: skip


def _titled_by_surname(names: Iterable[str]) -> dict[str, set[str]]:
    titled: dict[str, set[str]] = {}
    for name in filter(_is_titled, names):
        titled.setdefault(name.split()[1], set()).add(name)
    return titled


def _is_full_name(name: str) -> bool:
    words = without_title(name).split()
    is_written_out = sum(len(word) > 1 for word in words) > 1
    return len(words) < 5 and is_written_out and name.replace(" ", "").isalpha() and words[0] not in PERSON_TITLES
