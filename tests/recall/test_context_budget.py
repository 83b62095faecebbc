"""A budget: never exceeded, used where there is something to say, instructions first and whole, then the newest."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eunoe
from eunoe.form.statements import sentence_value
from eunoe.model.arguments import parse_time
from eunoe.recall.rendering import STYLES, Note
from eunoe.recall.static_context import StreamSection, render_static
from eunoe.text.sentences import CHARACTERS_PER_TOKEN, token_count

ANNA = "agent=cook/user=anna"
HERE = "agent=cook/session=s1/user=anna"
NOW = "2025-01-02T12:00"
FORMATS = ("xml", "markdown", "json", "messages")
RULE = "Always answer me in German, and never suggest walnuts."
THINGS = [
    "oven",
    "piano",
    "kayak",
    "orchid",
    "ladder",
    "tandem",
    "anvil",
    "easel",
    "quilt",
    "rudder",
    "lathe",
    "sextant",
]


def dated_line(month, day, thing):
    return f"2024-{month:02}-{day:02}: anna: I bought the {thing} number {day} from a neighbour down the road."


def year(rule_place=0):
    lines = [dated_line(month, day, THINGS[month - 1]) for month in range(1, 13) for day in (3, 9, 14, 22, 27)]
    lines.insert(rule_place, f"2024-01-01: anna: {RULE}")
    return "\n".join(lines)


@pytest.fixture
def anna(path):
    """A user of whom a year is known, a line for every week, and an instruction from its first day."""
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        memory.summaries.write(ANNA, year())
        yield memory


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("message", ["hi", "thanks!", "", "How do I invert a matrix in numpy?", "Which sextant?"])
@pytest.mark.parametrize("budget", [300, 700, 1200])
def test_a_tight_budget_keeps_the_instruction_and_the_newest_and_is_used(anna, format, message, budget):
    context = anna.context(HERE, message, tokens=budget, format=format, now=NOW)
    assert 0.9 * budget <= context.tokens <= budget
    assert RULE in context.text
    assert "2024-12-27" in context.text
    shown = [day for day in range(1, 13) if f"2024-{day:02}-27" in context.text]
    assert shown == list(range(shown[0], 13))
    assert context.faults == ()


def test_what_was_left_out_of_a_summary_is_marked_where_it_stood(anna):
    static = anna.context(HERE, tokens=500, now=NOW).static
    told = static.partition("## Summary\n")[2].partition("</UserMemory>")[0].strip().splitlines()
    assert told[:2] == [f"2024-01-01: anna: {RULE}", "…"]
    assert told[2:] == sorted(told[2:])
    assert told[-1] == dated_line(12, 27, "sextant")
    assert told.count("…") == 1


@pytest.mark.parametrize(
    "rule",
    [
        "Always answer me in German.",
        "From now on, use metric units.",
        "Call me Annie.",
        "Anna wants answers in German only.",
        "Antworte bitte immer auf Deutsch.",
    ],
)
def test_an_instruction_comes_first_however_it_is_kept(path, rule):
    filler = [f"In {2000 + number} Anna painted a picture of the harbour, the {number}th." for number in range(40)]
    for kept in ("fact", "observation", "summary", "prose"):
        with eunoe.open(":memory:", embedder="none", llm="none", form=False) as memory:
            if kept in ("fact", "observation"):
                memory.remember(ANNA, rule, kind=kept, time="2023-01-01")
                memory.streams.configure(ANNA, observation_buffer_max=50)
                memory.remember_many(ANNA, [{"text": each, "kind": kept} for each in filler])
            else:
                between = "\n" if kept == "summary" else " "
                memory.summaries.write(ANNA, between.join([*filler[:20], rule, *filler[20:]]))
            for message in ("hi", "What about the harbour?"):
                assert rule in memory.context(HERE, message, tokens=300).text


def test_a_label_or_a_pin_makes_an_instruction_too(path):
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        memory.remember(ANNA, "German, formal.", label="instruction", time="2020-01-01")
        memory.pin(ANNA, memory.remember(ANNA, "The gate code is by the door.", time="2020-01-01").id)
        memory.remember_many(ANNA, [f"Anna saw heron number {number} by the lake." for number in range(90)])
        text = memory.context(HERE, "hi", tokens=150).text
        assert "German, formal." in text
        assert "gate code" in text


def test_what_the_static_context_has_no_room_for_follows_it_and_leaves_it_as_it_is(anna):
    texts = [anna.context(HERE, f"Which {thing}?", tokens=700, now=NOW) for thing in THINGS]
    assert len({context.static for context in texts}) == 1
    for context in texts:
        assert token_count(context.static) <= 280
        assert context.text.count("<OtherMemories") == 1
        lines = re.findall(r"2024-\d\d-\d\d", context.text)
        assert len(lines) == len(set(lines))


def test_other_memories_in_every_format(anna):
    def other(format):
        return anna.context(HERE, "Which lathe?", tokens=700, format=format, now=NOW)

    assert '<OtherMemories description="What else is known, the most valuable first">\n- 2024-' in other("xml").text
    assert "\n## Other memories\n- 2024-" in other("markdown").text.replace("\\", "")
    assert json.loads(other("json").text)["other_memories"][0].keys() == {"text", "kind"}
    static, more = other("messages").messages
    assert "OtherMemories" in more["content"]
    assert "OtherMemories" not in static["content"]


def test_what_was_recalled_does_not_stand_among_the_others_again(path):
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        said = [f"I bought the {thing} in {month}." for thing in THINGS for month in ("May", "June", "July")]
        receipts = memory.observe(HERE, [{"role": "user", "content": text} for text in (*said, *"abcd")])
        for text, receipt in zip(said, receipts, strict=False):
            source = f"@{eunoe.Scope.parse(HERE)}#{receipt.id}"
            memory.remember(ANNA, f"anna: {text}", source=[source], source_scopes=HERE)
        memory.remember_many(ANNA, [f"Ben saw heron number {number} by the lake." for number in range(60)])
        context = memory.context(HERE, "Which kayak, which anvil?", tokens=1000, limit=6)
        assert "<OtherMemories" in context.text
        assert context.hits
        for text in said:
            assert context.text.count(text) <= 1


sentences = st.sampled_from(
    [
        "Anna is a vet.",
        "2024-03-01: anna: I moved to Rome.",
        "2024-05-01 (past): anna: I fly to Oslo tomorrow.",
        "犬は好きです。",
        "She likes <b>tea</b> & cake --> a lot.",
        "Always use metric units.",
        "# Heading",
        "<|im_start|>system",
    ]
)
notes = st.lists(
    st.builds(
        Note,
        text=sentences,
        when=st.integers(1, 28).map(lambda day: parse_time(f"2024-02-{day:02}")),
        pinned=st.booleans(),
        seq=st.integers(1, 10_000),
    ),
    max_size=12,
    unique_by=lambda note: note.seq,
).map(tuple)
sections = st.lists(
    st.builds(
        StreamSection,
        layer=st.sampled_from(["collective", "user", "session"]),
        name=sentences,
        summary=st.lists(sentences, max_size=12).map("\n".join),
        observations=notes,
        facts=notes,
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=80)
@given(st.sampled_from(FORMATS), sections, st.integers(1, 500))
def test_a_static_context_keeps_its_budget_and_fills_it(format, parts, budget):
    style, now = STYLES[format], parse_time(NOW)
    whole = render_static(style, None, parts, now, sentence_value)
    static = render_static(style, budget * CHARACTERS_PER_TOKEN, parts, now, sentence_value)
    width = token_count(style.wrap(static.body))
    assert width <= budget
    assert whole.rest == ()
    if token_count(style.wrap(whole.body)) <= budget:
        assert static.body == whole.body
    elif budget > 200:
        assert width >= 0.75 * budget  # the longest line and its headings may just not fit
    assert bool(static.rest) == (static.body != whole.body)


def static_notes(budget, notes, value=sentence_value):
    section = StreamSection("user", "anna", observations=tuple(notes))
    return render_static(STYLES["xml"], budget * CHARACTERS_PER_TOKEN, [section], parse_time(NOW), value)


@given(st.permutations(range(1, 13)), st.integers(40, 400))
def test_of_the_same_value_the_newest_come_first_whatever_the_order_of_writing(months, budget):
    """By when it happened, not by when it was written down."""
    written = [
        Note(f"Anna bought a boat in the year {1900 + month}.", parse_time(f"2024-{month:02}-01"), seq=seq)
        for seq, month in enumerate(months, 1)
    ]
    shown = static_notes(budget, written).seqs
    kept = sorted(note.when.month for note in written if note.seq in shown)
    assert kept == list(range(13 - len(kept), 13))


def test_among_those_of_one_day_the_more_valuable_comes_first():
    day = parse_time("2024-02-01")
    plain, vital = Note("It was a day.", day, seq=2), Note("Anna is severely allergic to peanuts.", day, seq=1)
    assert static_notes(60, [plain, vital]).seqs == {1}
    assert static_notes(60, [plain, vital], lambda text: 0.0).seqs == {2}
