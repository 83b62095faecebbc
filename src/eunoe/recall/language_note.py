"""What a caller is told whose question is in a language that the embedder does not read."""

from collections.abc import Sequence

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
