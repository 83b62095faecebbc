"""A context says a sentence once, whatever says it a second time; and if it says nothing, it says why."""

from __future__ import annotations

import re

import pytest

import eunoe
from eunoe.recall.rendering import Sentences

ANNA = "agent=cook/user=anna"
HERE = f"{ANNA}/session=s2"
EARLIER = f"{ANNA}/session=s1"


@pytest.fixture
def cook():
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as memory:
        yield memory


@pytest.mark.parametrize(
    ("said", "text", "new"),
    [
        ("I keep bees on the roof.", "Hi! I keep bees on the roof. The hive is red.", "Hi! […] The hive is red."),
        ("I keep bees on the roof.", "Oh, nice! I keep bees on the roof.", ""),
        ("anna: I keep bees on the roof.", "I keep bees on the roof.", ""),
        ("Anna lives in the old mill.", "Anna: I live in the old mill.", ""),
        ("The shop opens at nine. (asked: When does it open?)", "The shop opens at nine.", ""),
        ("The shop opens next Monday.", "The shop opens next Monday (2026-05-11).", ""),
        ("Wednesday: swim for an hour.", "Thursday: swim for an hour.", "Thursday: swim for an hour."),
        ("Yes, please.", "Yes, please. The blue one with a lid.", "Yes, please. The blue one with a lid."),
        (
            "The shop is in Ghent.",
            "The shop is in Ghent. (until 2026-05-11)",
            "The shop is in Ghent. (until 2026-05-11)",
        ),
        ("The shop is in Ghent. (until 2026-05-11)", "The shop is in Ghent. It has a cat.", "[…] It has a cat."),
        ("The kayak is very red.", "[…] The kayak is very red. […] I slept well.", "[…] I slept well."),
    ],
)
def test_the_new_part_of_a_text(said, text, new):
    sentences = Sentences()
    sentences.add(said)
    assert sentences.new_part(text) == new


def test_a_line_of_the_summary_and_the_message_it_came_from_stand_once(cook):
    cook.observe(EARLIER, ["I keep nine bees on the roof. The hive is red and has a cat on it.", *"abcd"])
    cook.summaries.write(ANNA, "anna: I keep nine bees on the roof.")
    text = cook.context(HERE, "What is on the roof, where the red hive is?", tokens=500).text
    assert text.count("nine bees") == 1
    assert "[…] The hive is red and has a cat on it." in text


def test_an_instruction_is_kept_where_a_summary_says_it_too(cook):
    cook.remember(HERE, "Always answer in German.", label="instruction")
    cook.summaries.write(ANNA, "Always answer in German. Anna is a vet.")
    text = cook.context(HERE, tokens=80).text
    assert text.count("in German") == 1
    assert "Standing instructions" in text.partition("in German")[0]
    assert "Anna is a vet." in text


def test_two_messages_that_share_a_sentence_tell_it_once(cook):
    cook.observe(
        EARLIER, ["I keep nine bees on the roof. They are calm.", "I keep nine bees on the roof. Honey in May."]
    )
    text = cook.context(HERE, "What about the bees on the roof?").text
    assert text.count("nine bees") == 1
    assert "They are calm." in text
    assert "Honey in May." in text


def test_what_is_over_in_a_message_that_says_more_is_marked(cook):
    said = "My office is in the old mill. The bus to it takes an hour."
    cook.observe(EARLIER, [{"id": "m1", "content": said, "time": "2024-01-05"}, *"abcd"])
    old = cook.remember(
        ANNA, "anna: My office is in the old mill.", source=[f"@{eunoe.Scope.parse(EARLIER)}#m1"], source_scopes=EARLIER
    )
    cook.update(ANNA, old.id, "anna: My office is at the harbour.")
    text = cook.context(HERE, "How long does the bus to the old mill take?").text
    assert re.search(r"old mill\. \(until \d{4}-\d\d-\d\d\) The bus", text)


def test_an_empty_context_says_why(cook):
    def why(*args, **options):
        context = cook.context(*args, **options)
        assert context.text == ""
        return "; ".join(context.notes)

    assert why(HERE, "Where do I live?") == f"nothing is stored in {eunoe.Scope.parse(HERE)} yet"
    cook.observe(HERE, ["I live in Turin.", "It rains."])
    assert "2 messages wait for `form`" in why(HERE, "Where do I live?")
    assert "no message" in why(HERE)
    assert "recall is off" in why(HERE, "Where do I live?", recall="off")
    assert "holds nothing, but" in why("agent=cook", "Where do I live?")
    cook.remember(ANNA, "Anna lives in Turin, on the left side of the river.")
    assert "tokens=3" in why(HERE, "Where do I live?", tokens=3)
    group = "agent=cook/session=g"
    cook.observe(group, [{"role": "user", "user": name, "content": "Hm."} for name in ("anna", "ben")])
    assert "left out" in why(group, "Where does Anna live?", users=["anna"])
