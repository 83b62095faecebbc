"""A summary rewritten by an LLM: what it is asked, and how often."""

import json
import re

from eunoe.errors import EunoeError, LlmError
from eunoe.form.data_files import load_prompt
from eunoe.form.rule_summary import summarize_by_rules
from eunoe.form.summary_guard import SummaryTask, find_fault, format_time, read_object
from eunoe.llm.contract import Llm, Prompt
from eunoe.text.normalize import replace_surrogates
from eunoe.text.sentences import cut_to_words, word_count

_MAX_ANSWER_TOKENS = 8000
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"```\w*\n(.*)\n```", re.DOTALL)


def summarize_by_llm(llm: Llm, task: SummaryTask) -> tuple[str, str]:
    """Return the new summary and its author. One that is only too long is cut to its best sentences.

    Raise LlmError if two answers in a row cannot be used.
    """
    problem = ""
    for _ in range(2):
        text = _ask(llm, summary_prompt(task, problem))
        fault, size = find_fault(text, task), word_count(text)
        if not fault and size <= task.max_words:
            return text, llm.name
        problem = fault or f"it had {size} words; the limit is {task.max_words}"
    if fault:
        raise LlmError(f"{llm.name} wrote no summary that can be used: {problem}")
    short = summarize_by_rules(text, [], task.max_words, task.now).strip() or cut_to_words(text, task.max_words)
    return short, f"{llm.name}, cut"


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
    """The text of an answer, without thoughts, a code fence or a JSON object around it."""
    try:
        answer = replace_surrogates(llm.ask(prompt).text)
    except EunoeError:
        raise
    except Exception as error:  # an LLM of somebody else's making may raise anything
        raise LlmError(f"{llm.name} failed: {type(error).__name__}") from error
    thoughts, end, rest = answer.rpartition("</think>")  # every thought that begins there has an end
    text = (_THOUGHT.sub("", thoughts + end) + rest).strip()
    fenced = _FENCE.fullmatch(text)
    text = (fenced[1] if fenced else text).strip()
    texts = [value for value in (read_object(text) or {}).values() if isinstance(value, str)]
    return replace_surrogates(texts[0]).strip() if len(texts) == 1 else text
