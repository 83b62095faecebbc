"""Plain texts without labels, on which a student learns how near its teachers put them to one another."""

import ast
import re
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from corpus import DocumentSet, TalkStream
from parallel import Pair

MIN_CHARACTERS = 15
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass
class TextPool:
    """English texts, and texts in other languages whose target is the vector of their English."""

    english: list[str] = field(default_factory=list)
    technical: list[bool] = field(default_factory=list)
    """Which of the English texts are about software."""
    groups: list[list[int]] = field(default_factory=list)
    """Places of English texts that belong together: of one conversation, or of neighbouring passages."""
    foreign: list[tuple[str, int]] = field(default_factory=list)
    _place: dict[str, int] = field(default_factory=dict)

    def add(self, text: str, *, technical: bool = False) -> int:
        if text not in self._place:
            self._place[text] = len(self.english)
            self.english.append(text)
            self.technical.append(technical)
        return self._place[text]

    def add_group(self, texts: Iterable[str], *, technical: bool = False) -> None:
        self.groups.append(list(dict.fromkeys(self.add(text, technical=technical) for text in texts)))

    def add_translation(self, text: str, english: str) -> None:
        self.foreign.append((text, self.add(english)))


def text_pool(
    talk: Sequence[TalkStream],
    documents: Sequence[DocumentSet],
    technical: Sequence[DocumentSet],
    pairs: Iterable[Pair],
    docstrings: Iterable[list[str]],
) -> TextPool:
    pool = TextPool()
    for stream in talk:
        queries = [stream.query_text(each.text) for each in stream.questions + stream.facts]
        pool.add_group([*stream.turns, *queries])
        for each in stream.questions + stream.facts:
            for text in each.translations:
                pool.add_translation(stream.query_text(text), stream.query_text(each.text))
    for corpus in documents:
        _add_documents(pool, corpus, technical=False)
    for corpus in technical:
        _add_documents(pool, corpus, technical=True)
    for module in docstrings:
        pool.add_group(module, technical=True)
    for pair in pairs:
        pool.add_translation(pair.text, pair.english)
    return pool


def _add_documents(pool: TextPool, corpus: DocumentSet, *, technical: bool, size: int = 24) -> None:
    for start in range(0, len(corpus.passages), size):
        passages = corpus.passages[start : start + size]
        parts = [part for text in passages for part in _SENTENCE_END.split(text) if len(part) > MIN_CHARACTERS]
        pool.add_group([*passages, *parts], technical=technical)
    pool.add_group([each.text for each in corpus.questions], technical=technical)


def standard_library() -> Iterator[list[str]]:
    """The docstrings of Python's standard library, module by module, whole and by their first sentence."""
    folder = Path(sysconfig.get_path("stdlib"))
    for path in sorted(folder.rglob("*.py")):
        if {"site-packages", "test", "tests", "idlelib"}.isdisjoint(path.relative_to(folder).parts):
            found = list(dict.fromkeys(_docstrings(path)))
            if len(found) > 1:
                yield found


def _docstrings(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node) or ""
            name = "" if isinstance(node, ast.Module) else f"{node.name}: "
            if len(text) > MIN_CHARACTERS:
                yield f"{name}{text[:600]}"
                yield _SENTENCE_END.split(text)[0]
