"""A summary rewritten by an LLM: what it is asked, how often, and what is made of its answers."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from eunoe.errors import EunoeError, LlmError
from eunoe.form.data_files import load_prompt
from eunoe.form.summaries import (
    SummaryTask,
    find_absorbed,
    find_fault,
    find_lost,
    find_unfounded,
    format_time,
    summarize_by_rules,
)
from eunoe.form.summary_answer import Answer, read_answer
from eunoe.llm.contract import Llm, Prompt
from eunoe.model.atom import Atom
from eunoe.text.normalize import replace_surrogates
from eunoe.text.sentences import cut_to_words, word_count

UNUSABLE_SUMMARY = "no summary that can be used"
"""What every error says after an LLM answered in vain."""
_MAX_ANSWERS = 2
_MAX_ANSWER_TOKENS = 8000


class UnusableSummaryError(LlmError):
    """An LLM answered, and none of its answers can be used."""


class Summary(NamedTuple):
    """A summary that was written, by whom, and the observations that it absorbs."""

    text: str
    author: str
    absorbed: Sequence[Atom]
    lost: Sequence[str] = ()
    """What it does not say any more although it still holds."""


def summarize_by_llm(llm: Llm, task: SummaryTask) -> Summary:
    """Return the new summary. One that is too long is cut to its best sentences, one that leaves out what still holds
    is completed; its author says so.

    Raise UnusableSummaryError if no answer can be used.
    """
    problem, usable = "", list[Summary]()
    for _ in range(_MAX_ANSWERS):
        answer = read_answer(_ask(llm, summary_prompt(task, problem)), task.sources)
        problem = find_fault(answer.text, task)
        if problem:
            continue
        summary, problem = _judge(llm.name, answer, task)
        if not problem:
            return summary
        usable += [summary] if summary.text and (summary.absorbed or not task.observations) else []
    if not usable:
        raise UnusableSummaryError(f"{llm.name} wrote {UNUSABLE_SUMMARY}: {problem}")
    return _complete(max(reversed(usable), key=lambda each: (len(each.absorbed), -len(each.lost))), task)


def _judge(name: str, answer: Answer, task: SummaryTask) -> tuple[Summary, str]:
    """The summary that an answer gives, and what is wrong with it."""
    unfounded = find_unfounded(answer.text, task)
    text, author = _without(answer.text, unfounded), name
    size = word_count(text)
    if size > task.max_words:
        text = summarize_by_rules(text, [], task.max_words, task.now).strip() or cut_to_words(text, task.max_words)
        author = f"{name}, cut"
    absorbed, lost = find_absorbed(text, answer.dropped, task), find_lost(text, task)
    summary = Summary(text, author, absorbed, lost)
    if unfounded:
        return (
            summary,
            f"{len(unfounded)} of its sentences are not said by the summary or an observation: leave them out",
        )
    if size > task.max_words:
        return summary, f"it had {size} words; the limit is {task.max_words}"
    if task.observations and not absorbed:
        return summary, "it takes in none of the observations: say what each of them says, with its names and numbers"
    if lost:
        return summary, f"it leaves out {len(lost)} things that the summary said and that still hold: keep them"
    return summary, ""


def _without(text: str, sentences: Sequence[str]) -> str:
    """A text without some of its sentences, and without the lines that these leave empty."""
    lines = text.splitlines() if sentences else [text]
    kept = (_cut_out(line, sentences) for line in lines)
    return "\n".join(line for line in kept if any(map(str.isalnum, line)))


def _cut_out(line: str, sentences: Sequence[str]) -> str:
    for sentence in sentences:
        line = line.replace(sentence, "")
    return line.strip()


def _complete(summary: Summary, task: SummaryTask) -> Summary:
    """Put back what was left out, as far as there is room."""
    text = summary.text
    for sentence in summary.lost:
        longer = f"{text}\n{sentence}"
        text = longer if word_count(longer) <= task.max_words else text
    return summary if text == summary.text else summary._replace(text=text, author=f"{summary.author}, completed")


def summary_prompt(task: SummaryTask, problem: str = "") -> Prompt:
    """Put everything that was said or set inside JSON, where no character in it means anything."""
    data = {
        "purpose": task.purpose,
        "now": f"{task.now:%Y-%m-%d %H:%M} UTC",
        "word_limit": task.max_words,
        "summary": task.summary,
        "observations": [
            {"number": number, "date": format_time(atom), "text": atom.text}
            for number, atom in enumerate(task.observations, 1)
        ],
        "no_longer_true": [atom.text for atom in task.untrue],
        **({"problem": problem} if problem else {}),
    }
    return Prompt(
        load_prompt("summary").system,
        json.dumps(data, ensure_ascii=False, indent=1),
        name="summary",
        max_tokens=min(_MAX_ANSWER_TOKENS, 500 + 3 * task.max_words),
        operation="consolidation",
    )


def _ask(llm: Llm, prompt: Prompt) -> str:
    try:
        return replace_surrogates(llm.ask(prompt).text)
    except EunoeError:
        raise
    except Exception as error:  # an LLM of somebody else's making may raise anything
        raise LlmError(f"{llm.name} failed: {type(error).__name__}") from error
