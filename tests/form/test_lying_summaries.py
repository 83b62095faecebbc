"""Whatever a model answers, no observation is lost: it stands in the summary or waits, or is past or superseded."""

from __future__ import annotations

import json
from itertools import product

import pytest
from tests.support.scripted_memory import ANNA, ScriptedMemory

from eunoe.errors import LlmError
from eunoe.form.data_files import load_prompt
from eunoe.text.sentences import split_sentences

OLD = {
    "Anna is a nurse.": ["nurse"],
    "Anna avoids lactose.": ["lactose"],
    "Her code for the bikes is 4711.": ["4711"],
}
NEW = {
    "Anna is allergic to peanuts.": ["allergic", "peanuts"],
    "Anna has a cat called Miso.": ["cat", "miso"],
    "Anna does not drink alcohol.": ["not", "alcohol"],
    "Anna pays 950 euros of rent.": ["950", "rent"],
}
"""Observations, and the words without which nobody says them."""
OVER = ["Anna lives in Turin.", "Anna moved to Rome.", "Anna will visit Lea on 3 May 2024."]
"""What is superseded, what supersedes it, and what is past: a summary may leave out the first and the last."""
STORY = "Once upon a time a girl walked in the woods, met a wolf and brought her grandmother cake and wine."


def texts(prompt):
    return [one["text"] for one in json.loads(prompt.text)["observations"]]


def summary(prompt):
    return json.loads(prompt.text)["summary"]


def everything(prompt):
    return " ".join([summary(prompt), *texts(prompt)]).strip()


DROPPED = "Dropped: 1 (past), 2 (past), 3 (past), 4 (superseded), 5 (superseded), 6 (past), 7 (past)"
LIES = {
    "null": "null",
    "nothing": "",
    "ok": "OK.",
    "n/a": "N/A",
    "done": "Done.",
    "none": "None",
    "empty object": "{}",
    "empty list": "[]",
    "null inside": '{"summary": null}',
    "nothing inside": '{"summary": ""}',
    "a million x": "x" * 1_000_000,
    "a million words": "Anna " * 1_000_000,
    "long word": lambda prompt: f"{everything(prompt)} {'y' * 5000}",
    "announcement": "Here is the updated summary:",
    "polite": "Sure! Let me know if you need anything else.",
    "claim": "All observations have been taken in.",
    "no change": "The summary is up to date; no changes are needed.",
    "general": "Anna is a person with a home, habits, a pet and some needs.",
    "one name": "Anna.",
    "story": STORY,
    "question": load_prompt("summary").system,
    "example": "Ada lives in Bruges, where she moved in May 2026. She sings in a choir. She must not eat celery.",
    "prompt": lambda prompt: prompt.text,
    "unchanged": summary,
    "only the first": lambda prompt: texts(prompt)[0],
    "only the last": lambda prompt: texts(prompt)[-1],
    "without the old": lambda prompt: " ".join(texts(prompt)),
    "all but one": lambda prompt: everything(prompt).replace("Anna is allergic to peanuts.", ""),
    "denied": lambda prompt: (
        everything(prompt).replace("is allergic", "is not allergic").replace("does not drink", "drinks")
    ),
    "another verb": lambda prompt: everything(prompt).replace("is allergic to", "grows"),
    "an order": lambda prompt: everything(prompt).replace("Anna is allergic to", "Give Anna"),
    "other numbers": lambda prompt: everything(prompt).replace("950", "590").replace("4711", "1174"),
    "other names": lambda prompt: everything(prompt).replace("Miso", "Momo").replace("peanuts", "walnuts"),
    "first words": lambda prompt: " ".join(" ".join(text.split()[:2]) for text in texts(prompt)),
    "numbers alone": lambda prompt: " ".join(map(str, range(1, 1 + len(texts(prompt))))),
    "all dropped": lambda prompt: f"{summary(prompt)}\n{DROPPED}",
    "one taken in, all dropped": lambda prompt: f"{texts(prompt)[-1]}\n{DROPPED}",
}
STATES = ("no summary", "summary", "summary by hand")
CASES = list(product(LIES, STATES))


def is_held(text, words):
    """Whether one sentence has all the words, and says no more and no less "not" than they do."""
    spoken = [sentence.lower() for sentence in split_sentences(text or "")]
    found = [sentence for sentence in spoken if all(word in sentence for word in words)]
    return any(("not" in sentence.split()) == ("not" in words) for sentence in found)


@pytest.mark.parametrize(("lie", "state"), CASES)
def test_no_observation_is_lost(path, lie, state):
    is_lying = state == "no summary"

    def write(prompt):
        if not is_lying:
            return everything(prompt)
        return LIES[lie](prompt) if callable(LIES[lie]) else LIES[lie]

    anna = ScriptedMemory(path, write, consolidation_trigger=1)
    with anna.opened:
        held = dict(NEW)
        if state == "summary":
            anna.add(*OLD, time="2024-04-01")
            assert len(anna.consolidate().absorbed) == len(OLD)
        elif state == "summary by hand":
            anna.memory.summaries.write(ANNA, " ".join(OLD))
        if state != "no summary":
            held |= OLD
        is_lying = True
        ids = dict(zip([*NEW, *OVER], anna.add(*NEW, *OVER, time="2024-04-02"), strict=True))
        for _ in range(12):
            try:
                anna.consolidate()
            except LlmError:
                assert anna.lease.attempts
            waiting = anna.waiting
            for text, words in held.items():
                assert ids.get(text) in waiting or is_held(anna.text, words), text
            assert ids["Anna moved to Rome."] in waiting or is_held(anna.text, ["rome"])
        assert len(anna.text.split()) <= 400
        assert anna.waiting == [], "nothing waits for ever"
        asked = len(anna.llm.prompts)
        assert anna.consolidate() is None
        assert len(anna.llm.prompts) == asked <= 30
