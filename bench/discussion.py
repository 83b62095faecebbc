"""Discussions: how fast retrievers are, also beside raw FTS5, and what creators take."""

import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Final

import eunoe
from bench import Result, StatusLine, silent
from bench.conversations import load_conversations
from bench.forming import made_up_sentence
from bench.metrics import latency, measure_ms, score_views
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import (
    CHUNK_MEMORY,
    KEYWORD_MEMORY,
    STATE_DOCUMENT,
    ChunkMemory,
    KeywordMemory,
    discussion_scope,
    memory_item,
)
from eunoe.apps.discussion.retrievers import MemoryService
from eunoe.apps.discussion.settings import DiscussionSettings
from eunoe.apps.discussion.update import update_discussion
from eunoe.cli.display import View
from eunoe.memory import Memory

SIZES: Final = (1250, 2500, 5000)
"""How many messages creators are given."""
_SETTINGS: Final = DiscussionSettings(memory_kinds=(CHUNK_MEMORY, KEYWORD_MEMORY), lookback=0)
_ID: Final = "bench"
_SCOPE: Final = discussion_scope(_ID)
_DRAWS: Final = 10
"""So often as many queries are drawn as are needed, since some come twice."""
_WARM_UPS: Final = 5
_BATCH_SIZE: Final = 500
_LONG_WORD: Final = 5
_FTS5: Final = """
    CREATE TABLE memories(id INTEGER PRIMARY KEY, memory_text TEXT NOT NULL);
    CREATE VIRTUAL TABLE memories_fts USING fts5(
        title, summary, entities, key_phrases, memory_text_unweighted, tokenize='porter');
"""
_FTS5_SEARCH: Final = """
    SELECT memories.memory_text FROM memories_fts JOIN memories ON memories.id = memories_fts.rowid
    WHERE memories_fts MATCH ? ORDER BY bm25(memories_fts) LIMIT 5
"""

Search = Callable[[str], object]


def measure(
    *,
    messages: int = 5000,
    memories: int = 500,
    repeats: int = 300,
    sizes: Sequence[int] = SIZES,
    progress: StatusLine = silent,
) -> Result:
    """Milliseconds of each retriever, and seconds of creators by number of messages."""
    with tempfile.TemporaryDirectory() as folder:
        with _open(Path(folder) / "retrievers.db") as memory:
            progress(f"filling a discussion of {messages} messages and {memories} memories of each kind")
            rows = _fill(memory, messages, memories)
            progress("measuring retrievers")
            retrievers = _measure_retrievers(MemoryService(memory), rows, repeats)
            progress("measuring keyword search beside FTS5")
            beside_fts5 = _compare_with_fts5(MemoryService(memory), Path(folder) / "fts5.db", rows, repeats)
        creators = {}
        for size in sizes:
            progress(f"creators: {size} messages")
            creators[str(size)] = _measure_creators(Path(folder) / f"creators-{size}.db", size)
    return {
        "messages": messages,
        "memories": memories,
        "retrievers_ms": retrievers,
        "keyword_search": beside_fts5,
        "creators": creators,
    }


@contextmanager
def _open(path: Path | str) -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        yield memory


def _chat(count: int) -> list[dict[str, str]]:
    """A chat of so many messages, each different from every other."""
    turns = cycle(turn.text for conversation in load_conversations() for turn in conversation.turns)
    texts = (f"{text} {made_up_sentence(number)}" for number, text in enumerate(islice(turns, count)))
    return [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]


def _fill(memory: Memory, messages: int, memories: int) -> list[KeywordMemory]:
    """One discussion with everything a retriever can give; return its keyword memories."""
    chat = _chat(messages)
    DiscussionLog(memory, _SCOPE).take_in(chat)
    texts = [message["content"] for message in islice(cycle(chat[:: max(1, messages // memories)]), memories)]
    chunks = [ChunkMemory(text=text, id=f"chunk-{place}", place=float(place)) for place, text in enumerate(texts)]
    rows = [_keyword_memory(place, text) for place, text in enumerate(texts)]
    items = [*map(memory_item, chunks), *map(memory_item, rows)]
    for start in range(0, len(items), _BATCH_SIZE):
        memory.remember_many(_SCOPE, items[start : start + _BATCH_SIZE])
    memory.remember(_SCOPE, " ".join(texts[:20]), id=STATE_DOCUMENT, label=STATE_DOCUMENT)
    memory.summaries.write(_SCOPE, " ".join(texts[:20]), author="bench")
    return rows


def _keyword_memory(place: int, text: str) -> KeywordMemory:
    words = text.split()
    names = [word.strip(".,") for word in words if word[:1].isupper()]
    phrases = [" ".join(words[start : start + 2]) for start in range(0, min(len(words), 12), 3)]
    return KeywordMemory(
        title=" ".join(words[:6]),
        summary=text,
        entities=tuple(dict.fromkeys(names))[:6],
        key_phrases=tuple(phrases),
        id=f"keyword-{place}",
        place=float(place),
    )


def _keywords(rows: Sequence[KeywordMemory], count: int, most: int | None = None) -> list[str]:
    """As a model writes them for a message: some words, a name and a phrase of a memory, or only the first ones.

    No query is asked twice, as far as there are so many different ones.
    """
    chance = random.Random(7)
    drawn = (_keywords_of(chance.choice(rows), chance).split("; ")[:most] for _ in range(_DRAWS * count))
    return list(islice(dict.fromkeys(map("; ".join, drawn)), count))


def _keywords_of(row: KeywordMemory, chance: random.Random) -> str:
    long = [word.strip(".,;:!?\"'") for word in row.summary.split() if len(word) >= _LONG_WORD] or [row.title]
    words = chance.sample(long, min(2, len(long)))
    return "; ".join([*words, *row.entities[:1], chance.choice(row.key_phrases or (row.title,))])


def _measure_retrievers(service: MemoryService, rows: Sequence[KeywordMemory], repeats: int) -> dict[str, Result]:
    keywords = _keywords(rows, repeats + _WARM_UPS)
    reader = service.reader(_ID)
    searches: dict[str, Search] = {
        "recent chunk memories": lambda _: service.get_recent_memories([], _ID),
        "first five": lambda _: service.get_first_five_memories(_ID),
        "all memories": lambda _: service.get_current_memories(_ID),
        "current summary": lambda _: service.get_current_summary(_ID),
        "full chat summary": lambda _: service.get_full_chat_summary(_ID),
        "state document": lambda _: service.get_current_state_document(_ID),
        "keyword search": lambda text: service.search_vector_memories(_ID, text),
        "the same, all options": lambda text: service.search_vector_memories(
            _ID, text, use_recency=True, include_dates=True, use_entity_expansion=True
        ),
        "chunk memory search": reader.search_chunk_memories,
        "conversation search": lambda text: service.search_conversation(_ID, text),
    }
    return {name: latency(_times(search, keywords, repeats)) for name, search in searches.items()}


def _times(search: Search, queries: Sequence[str], repeats: int) -> list[float]:
    times = [measure_ms(search, query)[1] for query in islice(cycle(queries), repeats + _WARM_UPS)]
    return times[_WARM_UPS:]


def _compare_with_fts5(
    service: MemoryService, path: Path, rows: Sequence[KeywordMemory], repeats: int
) -> dict[str, Result]:
    """Both on a file, in turn, query by query, so that what else the machine does hits both alike."""
    queries = {
        "four keywords": _keywords(rows, repeats + _WARM_UPS),
        "one keyword": _keywords(rows, repeats + _WARM_UPS, most=1),
    }
    result: dict[str, Result] = {}
    with closing(sqlite3.connect(path)) as database:
        _fill_fts5(database, rows)
        for name, texts in queries.items():
            ours, theirs = [], []
            for number, text in enumerate(islice(cycle(texts), repeats + _WARM_UPS)):
                pair = measure_ms(service.search_vector_memories, _ID, text)[1], measure_ms(_fts5, database, text)[1]
                if number >= _WARM_UPS:
                    ours.append(pair[0])
                    theirs.append(pair[1])
            figures = {"eunoe_ms": latency(ours), "fts5_ms": latency(theirs)}
            result[name] = {**figures, "times_as_fast": _ratio(figures["fts5_ms"]["p50"], figures["eunoe_ms"]["p50"])}
    return result


def _fill_fts5(database: sqlite3.Connection, rows: Sequence[KeywordMemory]) -> None:
    database.executescript(_FTS5)
    for number, row in enumerate(rows, 1):
        lists = " ".join(row.entities), " ".join(row.key_phrases)
        database.execute("INSERT INTO memories VALUES (?, ?)", (number, row.summary))
        columns = "rowid, title, summary, entities, key_phrases, memory_text_unweighted"
        values = (number, row.title, row.summary, *lists, row.summary)
        database.execute(f"INSERT INTO memories_fts({columns}) VALUES (?, ?, ?, ?, ?, ?)", values)
    database.commit()


def _fts5(database: sqlite3.Connection, keywords: str) -> str:
    terms = (term.strip().replace("-", " ").replace('"', '""') for term in keywords.split(";"))
    match = " OR ".join(f'"{term}"' for term in terms if term)
    return "\n\n---\n\n".join(text for (text,) in database.execute(_FTS5_SEARCH, [match]))


def _measure_creators(path: Path, size: int) -> Result:
    """Everything that a run does, from the first message on, without a language model."""
    with _open(path) as memory:
        report, ms = measure_ms(update_discussion, memory, _SCOPE, _SETTINGS, messages=_chat(size), force=True)
    return {"seconds": round(ms / 1000, 2), "ms_per_message": round(ms / size, 3), "made": report.made}


def _ratio(first: float, second: float) -> float:
    return round(first / second, 2) if second else 0.0


def rows(result: Result) -> list[View]:
    """A table for each of the figures."""
    size = f"{result['messages']} messages, {result['memories']} memories of each kind"
    fts5 = {
        name: {"Eunoe p50": each["eunoe_ms"]["p50"], "FTS5 p50": each["fts5_ms"]["p50"]}
        for name, each in result["keyword_search"].items()
    }
    ratios = ", ".join(f"{name} {each['times_as_fast']:.2f}" for name, each in result["keyword_search"].items())
    creators = {f"{size} messages": each for size, each in result["creators"].items()}
    return [
        *score_views(f"retrievers, warm: {size}", [result["retrievers_ms"]], cell="{:.3f} ms"),
        *score_views("keyword search beside raw FTS5", [fts5], f"times as fast: {ratios}", cell="{:.3f} ms"),
        *(
            score_views("creators without a language model", [creators], _linearity(result), cell="{:.2f}")
            if creators
            else []
        ),
    ]


def _linearity(result: Result) -> str:
    """What a message takes in the longest chat beside the shortest."""
    figures = list(result["creators"].values())
    ratio = _ratio(figures[-1]["ms_per_message"], figures[0]["ms_per_message"])
    return f"a message in the longest takes {ratio:.2f} times what it takes in the shortest"
