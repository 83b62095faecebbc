"""What a scope holds, all of it, read page by page; and what of it has some words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Final, NamedTuple

from eunoe.memory.memory import Memory
from eunoe.model.atom import Atom, Item, source_name
from eunoe.model.message import Message
from eunoe.model.result import Hit
from eunoe.model.scope import Scope, ScopeLike
from eunoe.model.turn import user_named_by
from eunoe.text.analyzer import content_terms, text_terms
from eunoe.text.languages import detect_language
from eunoe.text.normalize import normalize_name

_PAGE: Final = 1000
_MAX_ALIKE: Final = 10


def iterate(memory: Memory, scope: ScopeLike, *, after: str = "", limit: int = _PAGE, **wanted: Any) -> Iterator[Item]:
    """All that `memory.list` gives for a scope, read in pages of `limit`."""
    while True:
        page = memory.list(scope, limit=limit, after=after, **wanted)
        yield from page.items
        if not (after := page.next):
            return


def iterate_atoms(memory: Memory, scope: ScopeLike, *, limit: int = _PAGE, **wanted: Any) -> Iterator[Atom]:
    """The atoms among them."""
    return (item for item in iterate(memory, scope, limit=limit, **wanted) if isinstance(item, Atom))


class WordMatches(NamedTuple):
    """What a scope holds that has some words, and what is alike but has not."""

    found: list[Item]
    alike: list[Hit]


def find_words(memory: Memory, scope: Scope, words: str, *, exact: bool = False) -> WordMatches:
    """Find what has all these words by their stems, or whose person has them for a name. Closed versions count too."""
    found = list(filter(_matcher(words), iterate(memory, scope, limit=_PAGE, retired=True, exact=exact)))
    places = {(item.scope, item.id) for item in found}
    hits = memory.recall(scope, words, limit=_MAX_ALIKE + min(len(found), _PAGE), exact=exact)
    alike = [hit for hit in hits if (hit.scope, hit.id) not in places]
    return WordMatches(found, alike[:_MAX_ALIKE])


def full_id(item: Item, scope: Scope) -> str:
    """The id by which `forget` means this one in a scope, also where others have the same."""
    return source_name(item.scope or scope, item.id, scope)


def _matcher(words: str) -> Callable[[Item], bool]:
    name = normalize_name(words)
    telling = " ".join(token for token in words.split() if content_terms(token)) or words
    terms_in = cache(partial(text_terms, telling))

    def has_words(item: Item) -> bool:
        text = f"{item.text}\n{item.caption}" if isinstance(item, Message) else item.text
        language = detect_language(text)
        return name in map(normalize_name, _names(item)) or terms_in(language) <= text_terms(text, language)

    return has_words


def _names(item: Item) -> tuple[str, ...]:
    return (item.speaker, user_named_by(item)) if isinstance(item, Message) else item.people
