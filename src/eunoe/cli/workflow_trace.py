"""What each node of a workflow did, for people: a block of short lines for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import fill
from typing import Final

from eunoe.apps.discussion.workflow import NodeTrace
from eunoe.cli.display.output import one_line, shorten

_COLUMNS: Final = 80


def trace_text(traces: Iterable[NodeTrace]) -> str:
    """Inputs, output, time and tokens of nodes, each on a line that is cut where a narrow terminal ends."""
    return "\n\n".join("\n".join(_lines(trace)) for trace in traces)


def _lines(trace: NodeTrace) -> Iterator[str]:
    yield shorten(f"{trace.workflow}: {trace.place}", _COLUMNS)
    models = f", {', '.join(trace.models)}" if trace.models else ""
    tokens = f"{trace.input_tokens} tokens in, {trace.output_tokens} out"
    yield _cut(f"{trace.seconds:.3f} s, {tokens}{models}")
    yield from (_cut(f"{key}: {text}") for key, text in trace.inputs.items() if text)
    yield from (_whole(f"note: {note}") for note in trace.notes)
    yield _whole(f"error: {trace.error}") if trace.error else _cut(f"output: {trace.output}")


def _cut(text: str) -> str:
    return f"  {shorten(text, _COLUMNS - 2)}"


def _whole(text: str) -> str:
    return fill(one_line(text), _COLUMNS, initial_indent="  ", subsequent_indent="    ")
