"""Extraction of the entity graph by an LLM: the names in passages and what is said of these, several in one call.

The answer is checked against the passage. What cannot be used is not kept, and its passage stays due.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TypeGuard

from eunoe.errors import LlmError
from eunoe.form.chunk import StreamsRead, describe_failure
from eunoe.form.data_files import load_prompt
from eunoe.form.llm_extraction import SchemaLlm
from eunoe.index.passage import is_within
from eunoe.llm.contract import CutAnswerError, DeclinedError, Llm, Prompt, PromptTooLongError
from eunoe.llm.models import Models, asking_for
from eunoe.llm.structured import ask_structured
from eunoe.model.atom import Record
from eunoe.model.result import GraphReport, PassageGraph, Triple
from eunoe.model.scope import Scope
from eunoe.store.contract import ItemQuery, Reading, Store, Writing
from eunoe.store.schema import PassageGraphRecord, StreamState
from eunoe.text.entities import entity_key
from eunoe.text.normalize import escape_xml, fingerprint

_FROM_METADATA = "metadata"
"""Stands for the LLM where none was asked."""
_MAX_BATCH_PASSAGES = 8
_MAX_BATCH_CHARACTERS = 16_000
_MAX_PASSAGE_CHARACTERS = 8_000
"""How much of a passage is shown."""
_MAX_NAME_CHARACTERS = 120
_MAX_NAMES, _MAX_TRIPLES = 60, 60
_MAX_FAILED_CALLS = 3
"""Calls that may fail one after the other before the rest is left for another time."""
_MIN_PASSAGE_CHARACTERS = 1000
"""What is shorter is not cut in two: a model that does not come to its end with it never does."""
_SPLITTABLE = (CutAnswerError, PromptTooLongError, DeclinedError)
_MAX_ROUNDS = 4
"""How often passages are read anew because something was forgotten while they were read."""
_ANSWER_TOKENS_PER_PASSAGE = 700
_PAGE_SIZE = 200
_NUMBER = re.compile("[0-9]{1,4}")


def extract_graph(store: Store, models: Models, scope: Scope, limit: int | None, ask: bool) -> GraphReport:
    """Take in the graphs that the metadata of passages holds, and with `ask` have the LLM read what is due then, at
    most so many passages. No lock is held while it thinks."""
    llm = models.slow if ask else None
    stream = store.read([scope], lambda store: store.stream(scope))
    report = _take_from_metadata(store, stream) if stream else GraphReport()
    if ask and llm is None and not report.passages:
        raise LlmError("to read passages a language model is needed: open the memory with llm=..., or set EUNOE_LLM")
    if stream is None:
        return report
    if llm:
        with asking_for(scope):
            read, failed_calls = GraphReport(), 0
            for batch in _batches(record for page in _due_pages(store, stream) for record in page):
                done = _extract_batch(store, llm, stream, batch if limit is None else batch[: limit - read.passages])
                read += done
                # What fails is passed over: a passage that no LLM can read does not stand in the way of the others.
                failed_calls = failed_calls + 1 if done.failed and not done.passages else 0
                if failed_calls == _MAX_FAILED_CALLS or read.passages == limit:
                    break
            report += read
    due = ItemQuery(stream.id, open=True, reviewed=True, without_graph=True)
    return replace(report, due=store.read([scope], lambda store: store.count(due)))


def _take_from_metadata(store: Store, stream: StreamState) -> GraphReport:
    """Save the names and triples that somebody else's LLM found."""
    report = GraphReport()
    for page in _due_pages(store, stream):
        graphs = dict[int, PassageGraph]()
        for record in page:
            names, triples = (record.metadata.get(field) for field in PassageGraph._fields)
            rows = [row for row in triples if _are_all(row, str) and len(row) == 3] if isinstance(triples, list) else []
            given = PassageGraph(tuple(names) if _are_all(names, str) else (), tuple(map(Triple._make, rows)))
            graph = _keep_what_is_named(given, record.content) if given != PassageGraph() else given
            if graph != PassageGraph():
                graphs[record.seq] = graph
        records = [record for record in page if record.seq in graphs]
        data = {_text_id(record.content): (_FROM_METADATA, graphs[record.seq].json()) for record in records}
        count = len(_save_graphs(store, stream, records, data) or ())
        report += GraphReport(count, count, *_count_parts(graphs.values()))
    return report


def _count_parts(graphs: Iterable[PassageGraph]) -> tuple[int, int]:
    sizes = [(len(graph.entities), len(graph.triples)) for graph in graphs]
    return sum(names for names, _ in sizes), sum(triples for _, triples in sizes)


def _due_pages(store: Store, stream: StreamState) -> Iterator[list[Record]]:
    after = 0
    while True:
        due = ItemQuery(stream.id, after=after, open=True, reviewed=True, without_graph=True, limit=_PAGE_SIZE)
        page = store.read([stream.scope], partial(_select, due))
        if not page:
            return
        yield page
        after = page[-1].seq


def _select(query: ItemQuery, store: Reading) -> list[Record]:
    return store.select(query)


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    characters = 0
    for record in records:
        length = min(len(record.content), _MAX_PASSAGE_CHARACTERS)
        if batch and (len(batch) == _MAX_BATCH_PASSAGES or characters + length > _MAX_BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(record)
        characters += length
    if batch:
        yield batch


def _extract_batch(store: Store, llm: Llm, stream: StreamState, batch: Sequence[Record]) -> GraphReport:
    """Have a batch read. An answer to which a passage was shown that was forgotten meanwhile is thrown away."""
    for _ in range(_MAX_ROUNDS):
        reading, batch, known = store.read([stream.scope], partial(_read_batch, stream, batch))
        texts = {_text_id(record.content): record.content for record in batch}
        graphs, failed = _ask(llm, [text for id, text in texts.items() if id not in known])
        data = {id: (record.model, record.data) for id, record in known.items()}
        data |= {_text_id(text): (llm.name, graph.json()) for text, graph in graphs.items()}
        saved = _save_graphs(store, stream, batch, data, reading)
        if saved is not None:
            count = sum(record.content in known for record in saved)
            return GraphReport(len(saved), count, *_count_parts(graphs.values()), failed=failed)
    return GraphReport(failed=("something was forgotten each time while passages were read",))


def _read_batch(
    stream: StreamState, batch: Sequence[Record], store: Reading
) -> tuple[StreamsRead, Sequence[Record], dict[bytes, PassageGraphRecord]]:
    """The passages of a batch that are still due, and the graphs of the same words elsewhere."""
    left = store.select(ItemQuery(stream.id, seqs=[record.seq for record in batch], open=True, reviewed=True))
    same = store.load(PassageGraphRecord, content=list(dict.fromkeys(_text_id(record.content) for record in left)))
    here = {item.seq for item in store.select(ItemQuery(stream.id, seqs=[record.seq for record in same]))}
    known = {record.content: record for record in same if record.seq in here}
    return StreamsRead.of(store, [stream.scope]), left, known


def _ask(llm: Llm, texts: Sequence[str]) -> tuple[dict[str, PassageGraph], tuple[str, ...]]:
    """The graph of each text that the LLM could read, and what went wrong. Where an answer or a prompt is too long, or
    is declined, it is asked in smaller pieces."""
    if not texts:
        return {}, ()
    prompt = graph_prompt(texts)
    try:
        recorder = SchemaLlm(llm, prompt.schema)
        graphs = ask_structured(recorder, replace(prompt, schema=None), lambda answer: parse_answer(answer, texts))
    except Exception as error:  # an LLM of somebody else's making may raise anything
        if isinstance(error, _SPLITTABLE) and len(texts) > 1:
            return _ask_halves(llm, texts)
        if isinstance(error, _SPLITTABLE) and len(texts[0]) > _MIN_PASSAGE_CHARACTERS:
            # Out of the graphs of its halves is made that of one text; none if one of them cannot be read.
            shown = texts[0][:_MAX_PASSAGE_CHARACTERS]
            blank = shown.find(" ", len(shown) // 2)
            middle = blank if blank > 0 else len(shown) // 2
            halves = list(dict.fromkeys([shown[:middle], shown[middle:]]))
            found, failed = _ask_halves(llm, halves)
            if len(found) < len(halves):
                return {}, failed
            parts = zip(*(found[half] for half in halves), strict=True)
            return {texts[0]: PassageGraph(*(tuple(dict.fromkeys(chain(*part))) for part in parts))}, failed
        return {}, (describe_failure("passages could not be read", error),)
    missing = len(texts) - len(graphs)
    failed = (f"{llm.name} gave nothing usable for {missing} of {len(texts)} passages",) if missing else ()
    return {texts[place]: graph for place, graph in graphs.items()}, failed


def _ask_halves(llm: Llm, texts: Sequence[str]) -> tuple[dict[str, PassageGraph], tuple[str, ...]]:
    middle = len(texts) // 2
    (first, first_failed), (last, last_failed) = _ask(llm, texts[:middle]), _ask(llm, texts[middle:])
    return first | last, first_failed + last_failed


def _save_graphs(
    store: Store,
    stream: StreamState,
    batch: Sequence[Record],
    data: Mapping[bytes, tuple[str, str]],
    reading: StreamsRead | None = None,
) -> list[PassageGraphRecord] | None:
    """Save graphs for the records that are still there with the same words, and let the index know of it; None if
    something of a reading was forgotten."""
    if not data:
        return []

    def save(store: Writing) -> list[PassageGraphRecord] | None:
        if reading and reading.is_forgotten(store):
            return None
        stored = store.select(ItemQuery(seqs=[record.seq for record in batch]))
        there = [record for record in stored if _text_id(record.content) in data]
        graphs = [
            PassageGraphRecord(record.seq, id, *data[id]) for record in there for id in [_text_id(record.content)]
        ]
        if there:
            version = store.advance(stream.id).version
            store.save(graphs)
            store.update([record._replace(version=version) for record in there])
        return graphs

    return store.write([stream.scope], save)


def _text_id(text: str) -> bytes:
    return fingerprint("reading", text)


def graph_prompt(texts: Sequence[str]) -> Prompt:
    """Show every passage escaped and numbered, so that none can pass for anything else."""
    shown = (
        f'<passage number="{number}">{escape_xml(text[:_MAX_PASSAGE_CHARACTERS])}</passage>'
        for number, text in enumerate(texts, 1)
    )
    system, schema = load_prompt("graph")
    return Prompt(
        system,
        "\n".join(["<passages>", *shown, "</passages>"]),
        schema,
        name="passages",
        max_tokens=1000 + _ANSWER_TOKENS_PER_PASSAGE * len(texts),
        operation="graph",
    )


def parse_answer(answer: Any, texts: Sequence[str]) -> dict[int, PassageGraph]:
    """Return the graph of each text that an answer has one for, by the text's place.

    Raise LlmError if nothing in it can be used.
    """
    items = answer.get("passages") if isinstance(answer, dict) else answer
    if not isinstance(items, list):
        raise LlmError('the answer must be {"passages": [...]}, with one entry for each passage')
    graphs: dict[int, PassageGraph] = {}
    for item in items:
        given = item if isinstance(item, dict) and _NUMBER.fullmatch(str(item.get("number"))) else {}
        names, triples = given.get("entities"), given.get("triples")
        rows = (
            [[one.get(field) for field in Triple._fields] for one in triples] if _are_all(triples, dict) else [[None]]
        )
        # Where any part of it is not in the form that was asked for, a passage stays due.
        if _are_all(names, str) and all(_are_all(row, str) for row in rows) and 1 <= int(given["number"]) <= len(texts):
            place, graph = int(given["number"]) - 1, PassageGraph(tuple(names), tuple(map(Triple._make, rows)))
            graphs.setdefault(place, _keep_what_is_named(graph, texts[place]))
    if not graphs:
        raise LlmError("each passage needs an object with its number, a list of entities and a list of triples")
    return graphs


def _are_all(values: Any, kind: type) -> TypeGuard[list[Any]]:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _keep_what_is_named(graph: PassageGraph, text: str) -> PassageGraph:
    """The part of a graph whose names are in the text: an LLM's own knowledge, or its mistakes, are left out."""
    words = entity_key(text)

    def is_named(name: str) -> bool:
        return len(name) <= _MAX_NAME_CHARACTERS and bool(entity_key(name)) and is_within(entity_key(name), words)

    names = dict.fromkeys(filter(is_named, (" ".join(name.split()) for name in graph.entities)))
    given = (Triple(*(" ".join(part.split()) for part in triple)) for triple in graph.triples)
    triples = dict.fromkeys(
        triple
        for triple in given
        if is_named(triple.subject) and is_named(triple.object) and 0 < len(triple.relation) <= _MAX_NAME_CHARACTERS
    )
    return PassageGraph(tuple(names)[:_MAX_NAMES], tuple(triples)[:_MAX_TRIPLES])
