# ruff: noqa: RUF001, E501
"""Texts that stall a careless reader, and the readers: run as `python pathological.py READER`.

Each reading has so many seconds of processor time that only one whose time grows faster than the text needs more. The
kernel then ends the process; the last line that it wrote says what it was reading.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

SIZE = 12_500
"""Where a pattern starts anew at each character and reads on to the end, this takes some three seconds."""
SECONDS = 2
"""Readers take a fraction of a second."""
NOW = datetime(2024, 5, 5, tzinfo=UTC)

_UNITS = """
_ a A 1 . , - : ' " ` * # / \\ @ ~ = ? ! ( [ { < | + & … ’ “ « é ß \u0301 \u200b \ufe0f \u200d 🍎 👍🏽 🇩🇪 我 。 かな ก 한 я
ا \u064b अ İ ٣ ½ ² \0 a. 1. 1: 1, 1- 1/ a_ _a a- a' a/ a@ aA a1 1aa_ -À 'Z .A ?! .. != :// (a (a) {} {"a": [1, \\" “a ```
<think> <MemoryContext <!-- &amp; U.S. 2020- 1/1/ http:// a.b. a@b."""
UNITS = _UNITS.split()
SPACED_UNITS = (
    "a", "A", "1", ".", "-", ">", "#", "'", '"', "(", "a.", "A.", "1.", ":)", "and", "Anna", "Anna and", "Anna of",
    "Anna,", "I", "I am", "my", "known as", "not", "really", "May", "in May", "last week", "the week before", "between",
    "3 days ago", "1 May 2020", "Dr.", "Anna's", "Anna:", "12:30", "C++", "x" * 79, "please", "from now on", "(asked:",
    "2020-01-01:", "Anna likes tea.", "Do I?", "I moved to Rome and", "because", "well,", "ok", "but", "habe", "tomo",
    "appointment is",
)  # fmt: skip
RUNS = (" ", "\n", "\t", " \n", "\n\n", "\u2028", "\x85", "a\n", "- a\n", "```\n", "x" * 79 + "\n", "> a\n", "1. a\n")


def texts(size: int = SIZE) -> Iterator[str]:
    for unit in (*UNITS, *(f"{unit} " for unit in SPACED_UNITS), *RUNS):
        yield (unit * (size // len(unit) + 1))[:size]
    yield "\ufdfa" * (size // 18)  # 18 letters when it is normalised
    yield "start" + " " * size + "end"
    yield "# " + "A" * size + "\n\nbody"
    yield "a" + "\u0301\u0323" * (size // 2)
    yield "क" + "\u094d\u093c" * (size // 2)
    yield "(" * (size // 2) + ")" * (size // 2)
    yield "[" * (size // 2) + "]" * (size // 2)
    yield '{"a": ' + "1" * size
    yield " ".join(f"W{number}" for number in range(size // 7))
    yield " ".join(f"Name{number} likes thing{number}." for number in range(size // 25))
    yield "\n".join(f"Name{number} likes thing{number}." for number in range(size // 25))
    for letters in (30, 60, 120):
        yield f"1{'a' * letters}_b 1-{'a-' * letters}_ {'1.' * letters}x {'a' * letters}1!"


def readers() -> dict[str, Callable[[str], object]]:
    import eunoe
    from eunoe.apps.projects.documents import split_text
    from eunoe.apps.tickets.leak_guard import LeakGuard
    from eunoe.apps.tickets.redaction import redact
    from eunoe.errors import LlmError
    from eunoe.form.evidence import covered_share
    from eunoe.form.extractive import extract_extractively
    from eunoe.form.likeness import is_duplicate
    from eunoe.form.statements import (
        find_memory_key,
        find_people,
        is_fragment,
        is_question,
        is_secret,
        is_shareable,
        read_statement,
    )
    from eunoe.form.summaries import SummaryTask, find_fault, summarize_by_rules, summary_prompt
    from eunoe.form.turns import TurnReader
    from eunoe.index.lexical import LexicalIndex
    from eunoe.index.passage import parse_passage
    from eunoe.index.stream import StreamIndex
    from eunoe.llm.structured import read_json
    from eunoe.model.atom import Record
    from eunoe.model.scope import parse_scopes
    from eunoe.model.stream import PRESETS, Target
    from eunoe.model.turn import Turn, said_text
    from eunoe.recall.query import plan_query, read_question, rule_query
    from eunoe.recall.rendering import STYLES, Note
    from eunoe.recall.static_context import StreamSection, render_static
    from eunoe.text.dates import find_date_ranges
    from eunoe.text.entities import find_entities, title_keys
    from eunoe.text.languages import guess_language, name_language
    from eunoe.text.normalize import (
        bare_form,
        fold,
        look_alike_form,
        meaningful_signs,
        normalize,
        normalize_name,
        quote_xml,
    )
    from eunoe.text.sentences import cut_to_words, split_into_parts, split_sentences, token_count

    def render(text: str) -> None:
        section = StreamSection("user", "anna", text, (Note(text, NOW),))
        for style in STYLES.values():
            render_static(style, 500.0, [section], NOW)
        render_static(STYLES["xml"], None, [section], NOW)

    def ask(text: str) -> None:
        question = read_question(text, [0, 1], 0.0)
        plan_query(question, StreamIndex(), None)
        rule_query(text, [Turn("1", text), Turn("2", text, "assistant")])

    def parse_json(text: str) -> None:
        for answer in (text, f'{{"a": [{text}', f'{{"a": "{text}', f"['{text}"):
            with suppress(LlmError):
                read_json(answer)

    def form(text: str) -> None:
        target = Target("user", parse_scopes("user=anna")[0], PRESETS["user"], "anna")
        turns = [Turn("1", text, user="anna"), Turn("2", text[:-1], user="anna")]
        extract_extractively([target], TurnReader().read(turns))

    def summarize(text: str) -> None:
        for summary, answer in ((text, "Anna likes tea. " * 20), ("Anna likes tea. " * 20, text)):
            task = SummaryTask("", 100, summary, [], [], NOW)
            find_fault(answer, task)
            summary_prompt(task)
        summarize_by_rules(text, [], 200, NOW)

    def remember(text: str) -> None:
        with TemporaryDirectory() as folder, eunoe.open(Path(folder) / "memory.db", embedder="none") as memory:
            scope = {"user": "anna", "session": "monday"}
            memory.observe(scope, [text, {"role": "assistant", "content": text[1:]}])
            memory.remember("user=anna", f"Note: {text}")
            memory.recall(scope, f"What? {text}")
            memory.context(scope, f"What? {text}", tokens=500)
            memory.form(scope)

    record = Record(kind="message", id="1", identity=b"", text="", recorded=NOW, role="user")
    return {
        "tokeniser": lambda text: LexicalIndex().add([1], [text]),
        "dates": lambda text: find_date_ranges(text, NOW.timestamp()),
        "languages": lambda text: (guess_language(text), name_language(text)),
        "names": lambda text: (find_entities(text), title_keys(text), find_people(text), normalize_name(text)),
        "passage": parse_passage,
        "sentences": lambda text: (split_sentences(text), cut_to_words(text, 3000), split_into_parts(text)),
        "statements": lambda text: [
            read(text) for read in (read_statement, is_question, is_secret, is_fragment, is_shareable)
        ],
        "memory keys": lambda text: (find_memory_key("Anna", text), find_memory_key("Anna", "Rome.", text)),
        "turns": lambda text: said_text(record._replace(text=text)),
        "forming": form,
        "summaries": summarize,
        "content": lambda text: covered_share(text, [text]),
        "duplicates": lambda text: is_duplicate(text, f"{text} x"),
        "same text": lambda text: [
            read(text) for read in (fold, normalize, look_alike_form, meaningful_signs, bare_form)
        ],
        "prompts": lambda text: (quote_xml(text), token_count(text)),
        "rendering": render,
        "question": ask,
        "JSON": parse_json,
        "documents": split_text,
        "secrets": redact,
        "leaks": lambda text: LeakGuard([f"{text} x"], turns=[(text, "ok")]).redact(text),
        "memory": remember,
    }


def main(name: str) -> None:
    read = readers()[name]
    read("Anna likes tea.")
    for text in texts():
        print(ascii(text[:40]), "…", ascii(text[-10:]), flush=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        read(text)
    signal.setitimer(signal.ITIMER_PROF, 0)
    print("done")


if __name__ == "__main__":
    main(sys.argv[1])
