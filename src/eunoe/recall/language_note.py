"""Questions in a language that the embedder does not read: what their caller is told, and what vectors they get."""

from collections.abc import Sequence
from unicodedata import name as character_name

from eunoe.text.language_names import LATIN_LANGUAGES, name_language


def language_notes(embedder: str, languages: Sequence[str], question: str) -> tuple[str, ...]:
    """A note if the question is surely in none of these languages. Nobody knows what an embedder without any reads.

    >>> language_notes("eunoe-2", ["English"], "Wann kommt Anna?")[0][:60]
    'eunoe-2 reads English: this question (German) was matched by'
    """
    language = name_language(question) if languages else ""
    if not language or language in languages:
        return ()
    extent = "in part" if language in LATIN_LANGUAGES else "hardly"
    return (
        f"{embedder} reads {', '.join(languages)}: this question ({language}) was matched by its words and {extent} by "
        "its meaning; an embedder from a folder can read other languages (docs/languages.md)",
    )


def can_read(languages: Sequence[str], question: str) -> bool:
    """Whether an embedder of these languages tells apart what is written in the script of most of the question.

    To one that knows Latin script alone all texts in another script look alike. One that names no languages is trusted.

    >>> [can_read(["English"], text) for text in ("Who fixed it?", "Кто это исправил?", "誰が直した?", "7 + 7")]
    [True, False, False, True]
    >>> can_read([], "Кто это исправил?")
    True
    """
    if not languages or not LATIN_LANGUAGES.issuperset(languages):
        return True
    letters = [character for character in question if character.isalpha()]
    return 2 * sum("LATIN" in character_name(letter, "").split() for letter in letters) >= len(letters)
