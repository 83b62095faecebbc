"""What a memory tells that the agent does not have before it: no old question, nothing twice, nothing as still true."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.index.cache import IndexCache
from eunoe.model.atom import Record, SourcePlace, source_place
from eunoe.model.scope import Scope
from eunoe.model.turn import USER_ROLES
from eunoe.store.contract import ItemQuery, Store
from eunoe.text import analyzer
from eunoe.text.languages import STOP_WORDS
from eunoe.text.sentences import split_sentences

_QUESTION_ENDS: Final = ("?", "？", "؟")  # noqa: RUF001
_QUESTION_WORDS: Final = frozenset(
    (Path(__file__).parent / "words" / "question_words.txt").read_text("utf-8").casefold().split()
)
_CLAUSE: Final = re.compile(r"[,;:–—]\s")
_STATEMENT_END: Final = re.compile(r"(?:[!…。！]|\w{4}\.)\s")  # noqa: RUF001
"""Most messages that end in a question say something before it, which is quicker to see than to split."""
_WORD: Final = re.compile(r"[^\W_]+")
_MAX_CALL_WORDS: Final = 2
"""So many words before a comma are a greeting or a name; more say something."""
_WORDS_BEFORE: Final = 5
"""How far into a question its question word may stand: "Do you still know where I live?"."""
_MAX_QUESTION_CHARACTERS: Final = 300
_SAME_SHARE: Final = 0.9
"""A message of whose words an atom has this share says no more than the atom."""
_MAX_SUPERSEDED: Final = 200
"""The latest superseded atoms of a stream that are looked at: older ones are seldom said again."""
_STOP_WORDS: Final = frozenset[str]().union(*STOP_WORDS.values())


def is_old_question(record: Record, asked: frozenset[str]) -> bool:
    """Whether a user's message only asks, and tells nothing that is not asked again; `asked` are terms of what is."""
    text = record.text
    if record.kind != "message" or record.role.lower() not in USER_ROLES or len(text) > _MAX_QUESTION_CHARACTERS:
        return False
    if not text.rstrip(" \"'”’»)").endswith(_QUESTION_ENDS) or _STATEMENT_END.search(text):
        return False
    return all(_only_asks(sentence, asked) for sentence in split_sentences(text))


def _only_asks(sentence: str, asked: frozenset[str]) -> bool:
    if not sentence.rstrip(" \"'”’»)").endswith(_QUESTION_ENDS):
        return False
    *before, last = [_WORD.findall(clause.casefold()) for clause in _CLAUSE.split(sentence)]
    if any(len(words) > _MAX_CALL_WORDS for words in before):
        return False
    return not _QUESTION_WORDS.isdisjoint(last[:_WORDS_BEFORE]) or content_terms(sentence) <= asked


def content_terms(text: str) -> frozenset[str]:
    """The stems of the words of a text that name something."""
    words = [token.strip(".,;:!?\"'’“”()[]…") for token in text.split()]
    telling = [word for word in words if word and word.casefold().replace("’", "'") not in _STOP_WORDS]
    return frozenset(term for terms in analyzer.terms_of_each(telling) for term in terms)


def says_no_more(message: str, atoms: Iterable[str]) -> bool:
    """Whether atoms tell nearly everything that a message says."""
    said = content_terms(message)
    known = frozenset[str]().union(*map(content_terms, atoms))
    return len(said & known) >= _SAME_SHARE * len(said)


class SupersededAtom(NamedTuple):
    """An atom in whose place another is true, and since when."""

    text: str
    until: datetime

    @property
    def words(self) -> str:
        """Without the speaker's name."""
        return self.text.partition(": ")[2] or self.text

    @property
    def mark(self) -> str:
        return f" (until {self.until:%Y-%m-%d})"


class Superseded(NamedTuple):
    """What was superseded, by the messages it rests on."""

    by_place: Mapping[SourcePlace, Sequence[SupersededAtom]]

    def atoms_of(self, place: SourcePlace, now: datetime) -> tuple[SupersededAtom, ...]:
        return tuple(atom for atom in self.by_place.get(place, ()) if atom.until <= now)

    def end_of(self, place: SourcePlace, text: str, now: datetime) -> datetime | None:
        """Since when what a message says is not true any more; None if it still is, or says more than that."""
        atoms = self.atoms_of(place, now)
        is_over = atoms and says_no_more(text, [atom.text for atom in atoms])
        return max(atom.until for atom in atoms) if is_over else None


def find_superseded(store: Store, indexes: IndexCache, scopes: Sequence[Scope]) -> Superseded:
    """The atoms of these scopes that were superseded, the latest of each."""
    by_place: dict[SourcePlace, list[SupersededAtom]] = {}
    with indexes.borrow(scopes) as held:
        retired = [(each.owners, _retired_seqs(each.index.columns["retired"], each.index.seqs)) for each in held]
        for owners, seqs in retired:
            for record in store.select(ItemQuery(seqs=seqs, skip_damaged=True)) if seqs else ():
                if record.superseded_by and record.retired:
                    atom = SupersededAtom(record.text, record.valid_to or record.retired)
                    for name in record.sources:
                        by_place.setdefault(source_place(name, owners[record.stream]), []).append(atom)
    return Superseded(by_place)


def _retired_seqs(retired: NDArray[np.float64], seqs: Sequence[int]) -> list[int]:
    rows = np.flatnonzero(~np.isnan(retired))[-_MAX_SUPERSEDED:]
    return [seqs[row] for row in rows.tolist()]
