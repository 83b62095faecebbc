"""Where a word can stand: each place is taken out, or named; "verified" is said of nothing that still has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import eunoe
from eunoe.memory import Memory

ANNA, TALK, GROUP = "user=anna", "session=s1/user=anna", "agent=cook/session=g"
SAID = "My passport has the number C4X9ZZQ17."
LEARNED = "Anna's passport has the number C4X9ZZQ17."
SECRET = "C4X9ZZQ17"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm="none", form=False) as opened:
        yield opened


def files_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.rglob("*") if file.is_file())


def learn(memory: Memory, source: str = TALK, **message: object) -> str:
    memory.observe(source, {"content": SAID, "id": "m1", **message})
    name = f"@{eunoe.Scope.parse(source)}#m1"
    return memory.remember(ANNA, LEARNED, source=[name], source_scopes=source).id


def ids(mapping: object) -> dict[str, tuple[str, ...]]:
    return {str(scope): found for scope, found in mapping.items()}  # type: ignore[attr-defined]


@pytest.mark.parametrize("verify", [True, False])
def test_the_message_that_stays_is_named(memory: Memory, verify: bool) -> None:
    kept = learn(memory)
    report = memory.forget(ANNA, kept, verify=verify)
    assert ids(report.removed) == {ANNA: (kept,)}
    assert ids(report.held_by) == {TALK: ("m1",)}
    assert report.verified is (False if verify else None)
    again = memory.forget(TALK, "m1", verify=verify)
    assert (again.held_by, again.verified) == ({}, True if verify else None)


HOLDERS: dict[str, Callable[[Memory], tuple[str, str]]] = {
    "a session": lambda memory: (TALK, memory.observe(TALK, LEARNED)[0].id),
    "an agent": lambda memory: ("agent=cook/user=anna", memory.remember("agent=cook/user=anna", LEARNED).id),
    "a longer text": lambda memory: (TALK, memory.observe(TALK, f"You said: {LEARNED} Is it so?")[0].id),
    "a caption": lambda memory: (TALK, memory.observe(TALK, {"content": "Look!", "caption": LEARNED})[0].id),
    "somebody else": lambda memory: ("user=ben", memory.observe("user=ben", LEARNED)[0].id),
    "a group": lambda memory: (GROUP, memory.observe(GROUP, LEARNED)[0].id),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("exact", [True, False])
def test_whatever_says_the_same_is_named(memory: Memory, holder: str, exact: bool) -> None:
    scope, id = HOLDERS[holder](memory)
    kept = memory.remember(ANNA, LEARNED)
    report = memory.forget(ANNA, kept.id, verify=True, exact=exact)
    assert ids(report.held_by) == {scope: (id,)}
    assert report.verified is ("user=anna" not in scope)


def test_a_short_text_that_stays_is_named(memory: Memory) -> None:
    memory.observe(TALK, {"content": "PIN 4711", "id": "m1"})
    kept = memory.remember(ANNA, "Pin 4711.")
    report = memory.forget(ANNA, kept.id, verify=True)
    assert (ids(report.held_by), report.verified) == ({TALK: ("m1",)}, False)


def test_copies_outside_are_never_called_searched(memory: Memory, tmp_path: Path) -> None:
    kept = memory.remember(ANNA, LEARNED)
    memory.admin.export(ANNA, tmp_path / "out.jsonl")
    assert any("exports, backups" in place for place in memory.forget(ANNA, kept.id, verify=True).unsearched)
    assert memory.forget("user=nobody", everything=True).unsearched == ()


SUMMARIES = {
    "the words": LEARNED,
    "the words among others": f"Anna likes tea. {LEARNED} She has a cat.",
    "a paraphrase": "Anna likes tea.\n- Passport: C4X9ZZQ17\nShe has a cat.",
    "in part": "Anna likes tea, C4X9ZZQ17 is in her passport.",
}


@pytest.mark.parametrize("text", SUMMARIES.values(), ids=SUMMARIES)
@pytest.mark.parametrize("place", [ANNA, TALK, "agent=cook/user=anna"])
def test_a_summary_by_hand_no_longer_says_it(memory: Memory, path: Path, text: str, place: str) -> None:
    memory.remember(place, "Anna likes tea.")
    kept = memory.remember(ANNA, LEARNED)
    memory.summaries.write(place, "Before it was known.")
    memory.summaries.write(place, text)
    report = memory.forget(ANNA, kept.id, verify=True)
    assert report.verified, report
    assert SECRET.encode() not in files_of(path)
    assert SECRET not in memory.context(place, "What is the number of my passport?").text
    left = memory.summaries.revisions(place)[-1].text
    assert ("cat" in left) == ("cat" in text)


def test_a_summary_that_its_user_sees_in_a_session_loses_what_is_forgotten_there(memory: Memory) -> None:
    memory.observe(TALK, {"content": SAID, "id": "m1"})
    memory.summaries.write(ANNA, "Passport C4X9ZZQ17. Anna likes tea.")
    assert memory.forget(TALK, "m1", verify=True).verified
    assert [revision.text.strip() for revision in memory.summaries.revisions(ANNA)] == ["Anna likes tea."]


def test_a_summary_that_may_say_it_is_not_called_clean(memory: Memory) -> None:
    kept = memory.remember(ANNA, "Anna will travel with a wooden trunk.")
    memory.summaries.write(ANNA, "The attic of the old house has a trunk, two chairs and many broken toys.")
    report = memory.forget(ANNA, kept.id, verify=True)
    assert report.verified is False
    assert "revisions.text of user=anna" in report.traces[0]
    assert "trunk" in memory.summaries.revisions(ANNA)[-1].text


def test_what_another_memory_bears_out_stays_in_a_summary(memory: Memory) -> None:
    kept = memory.remember(ANNA, "Anna flew to Rome.")
    memory.remember(ANNA, "Anna's aunt lives in Rome. Anna flew there.")
    memory.summaries.write(ANNA, "Once she flew to Rome.")
    memory.forget(ANNA, kept.id)
    assert memory.summaries.revisions(ANNA)[-1].text == "Once she flew to Rome."


def test_a_fact_may_be_named_as_absorbed(memory: Memory) -> None:
    kept = memory.remember(ANNA, LEARNED)
    memory.summaries.write(ANNA, "Anna likes tea.")
    memory.summaries.write(ANNA, "Anna likes tea and travels with papers.", absorbed=[kept.id])
    report = memory.forget(ANNA, kept.id, verify=True)
    assert report.verified
    assert [revision.text for revision in memory.summaries.revisions(ANNA)] == ["Anna likes tea."]


def test_another_persons_summary_is_not_cut_by_ones_own_forgetting(memory: Memory) -> None:
    memory.summaries.write("agent=cook", f"{LEARNED} Refunds take 30 days.")
    own = memory.restricted(scopes=ANNA)
    for text in (LEARNED, "Refunds take 30 days."):
        kept = own.remember("agent=cook/user=anna", text)
        assert own.forget("agent=cook/user=anna", kept.id, verify=True).verified
    assert memory.summaries.revisions("agent=cook")[-1].text == f"{LEARNED} Refunds take 30 days."


PLACES: dict[str, Callable[[Memory], object]] = {
    "a session": lambda memory: memory.observe(TALK, SAID),
    "an agent's session": lambda memory: memory.observe("agent=cook/session=s2/user=anna", SAID),
    "a fact": lambda memory: memory.remember("agent=cook/user=anna", LEARNED),
    "a speaker": lambda memory: memory.observe(TALK, {"content": "Hello.", "speaker": f"Anna {SECRET}"}),
    "metadata": lambda memory: memory.remember(ANNA, "Hello.", metadata={"note": LEARNED}),
    "a person": lambda memory: memory.remember(ANNA, "Hello.", people=[LEARNED]),
    "a summary": lambda memory: memory.summaries.write("agent=cook/user=anna", LEARNED),
    "a setting": lambda memory: memory.streams.configure(ANNA, extraction_prompt=LEARNED, keep_best=7),
    "a lease": lambda memory: memory.leases.acquire(TALK, "work", data={"said": SAID}),
    "a group": lambda memory: memory.observe(GROUP, {"content": SAID, "metadata": {"user": "anna"}, "id": "g1"}),
    "a room that nothing is formed from": lambda memory: memory.observe(
        "room=1", {"content": SAID, "metadata": {"user": "anna"}, "id": "g1"}
    ),
    "an agent's own": lambda memory: memory.observe(
        "agent=cook", {"content": SAID, "metadata": {"user": "anna"}, "id": "g1"}
    ),
    "a correction": lambda memory: memory.corrections.add(ANNA, memory.observe(ANNA, SAID)[0].id, "keep"),
    "a closed version": lambda memory: memory.update(ANNA, memory.remember(ANNA, LEARNED).id, "It is lost."),
    "what waits for review": lambda memory: memory.review(ANNA, [memory.remember(ANNA, LEARNED).id], keep=False),
}


class TestEverything:
    @pytest.mark.parametrize("place", PLACES)
    def test_everything_of_a_user_is_everywhere(self, memory: Memory, path: Path, place: str) -> None:
        memory.remember("user=ben", "Ben likes tea.")
        PLACES[place](memory)
        for scope in (ANNA, TALK, GROUP, "agent=cook"):
            memory.form(scope)
        assert SECRET.encode() in files_of(path)
        report = memory.forget(ANNA, everything=True, verify=True)
        assert report.verified, report
        assert SECRET.encode() not in files_of(path)
        assert [item.text for item in memory.list("user=ben").items] == ["Ben likes tea."]

    def test_a_group_keeps_what_others_said_and_what_rests_on_them(self, memory: Memory) -> None:
        said = [("anna", SAID, "a"), ("ben", "I like tea.", "b"), ("", "Hello, both!", "c")]
        memory.observe(
            GROUP,
            [{"content": text, "id": id, **({"metadata": {"user": user}} if user else {})} for user, text, id in said],
        )
        memory.remember(GROUP, "Somebody has a passport.", id="alone", source=["a"])
        memory.remember(GROUP, "Ben likes tea.", id="ben", source=["b"])
        report = memory.forget(ANNA, everything=True, verify=True)
        assert report.verified, report
        assert ids(report.removed)[GROUP] == ("a", "alone")
        assert {item.id for item in memory.list(GROUP).items} == {"b", "c", "ben"}

    def test_only_what_the_scope_means_goes_from_conversations_with_others(self, memory: Memory) -> None:
        places = (GROUP, "agent=therapist/session=g", "room=1", "agent=cook/session=g/tenant=acme")
        for place in places:
            memory.observe(place, {"content": SAID, "metadata": {"user": "anna"}, "id": "g1"})
        memory.forget("agent=cook/user=anna", everything=True)
        assert [len(memory.list(place).items) for place in places] == [0, 1, 1, 1]
        memory.forget(ANNA, everything=True, exact=True)
        assert [len(memory.list(place).items) for place in places] == [0, 1, 1, 1]
        memory.forget(ANNA, everything=True)
        assert [len(memory.list(place).items) for place in places] == [0, 0, 0, 1]

    def test_it_stays_gone_when_the_same_is_observed_again(self, memory: Memory) -> None:
        message = {"content": SAID, "id": "m1", "metadata": {"user": "anna"}}
        for may_return in (False, True):
            for scope in (TALK, GROUP):
                memory.observe(scope, message)
            memory.forget(ANNA, everything=True, may_return=may_return)
            if not may_return:
                for scope in (TALK, GROUP):
                    assert memory.observe(scope, message)[0].outcome == "forgotten"
                assert memory.list(ANNA).items == memory.list(GROUP).items == ()
                with pytest.raises(eunoe.errors.NotFoundError):
                    memory.get(TALK, "m1")
                memory.forget(ANNA, everything=True, may_return=True)
                message = {**message, "id": "m2", "content": f"{SAID} Again."}
        assert [memory.observe(scope, message)[0].outcome for scope in (TALK, GROUP)] == ["stored", "stored"]

    def test_what_is_out_of_reach_stays_and_is_not_called_gone(self, memory: Memory) -> None:
        memory.observe(GROUP, {"content": SAID, "metadata": {"user": "anna"}, "id": "g1"})
        memory.observe(TALK, SAID)
        own = memory.restricted(scopes=ANNA)
        report = own.forget(ANNA, everything=True, verify=True)
        assert (report.verified, report.traces, report.held_by) == (False, (), {})
        assert "out of reach" in report.unsearched[0]
        assert GROUP not in str(report)
        assert memory.get(GROUP, "g1").text == SAID

    def test_the_reply_of_a_bound_key_is_the_same_whatever_others_hold(self, memory: Memory) -> None:
        reports = []
        own = memory.restricted(scopes=ANNA)
        for _ in range(2):
            kept = own.remember(ANNA, LEARNED, id="f", again=True)
            reports.append(own.forget(ANNA, kept.id, verify=True))
            memory.remember("user=ben", LEARNED)
            memory.summaries.write("user=ben", LEARNED)
        assert reports[0] == reports[1]
        assert reports[0].verified


SESSION = "agent=cook/session=s1/user=anna"
SHOWN: dict[str, tuple[str, dict[str, object], str, str, bool]] = {
    "the user's, in other words": (
        SESSION,
        {},
        "agent=cook/user=anna",
        "She has a passport and its number is C4 X9.",
        False,
    ),
    "the user's, word for word": (SESSION, {}, "agent=cook/user=anna", f"She likes tea. Passport: {SECRET}.", True),
    "a member's of a group": (GROUP, {"metadata": {"user": "anna"}}, "agent=cook/user=anna", f"Tea. {LEARNED}", True),
    "the agent's": (SESSION, {}, "agent=cook/shard=facts", f"Guests like tea. Passport: {SECRET}.", False),
}


@pytest.mark.parametrize("place", SHOWN)
def test_a_summary_by_hand_that_a_context_shows_beside_what_went_is_searched(memory: Memory, place: str) -> None:
    source, message, scope, summary, is_gone = SHOWN[place]
    memory.streams.configure("agent=cook/shard=facts", extraction_prompt="Facts.")
    memory.observe(source, {"role": "user", "content": SAID, "id": "m1", **message})
    memory.summaries.write(scope, summary)
    report = memory.forget(source, "m1", verify=True)
    assert report.verified is is_gone
    assert [f"revisions.text of {scope}" in trace for trace in report.traces] == ([] if is_gone else [True])


def test_an_agents_summary_that_shares_a_word_with_what_went_is_no_trace(memory: Memory) -> None:
    memory.streams.configure("agent=cook/shard=facts", extraction_prompt="Facts.")
    memory.observe(SESSION, {"role": "user", "content": "I love risotto.", "id": "m1"})
    memory.summaries.write("agent=cook/shard=facts", "Stir a risotto slowly and add stock by the ladle.")
    assert memory.forget(SESSION, "m1", verify=True).verified


@pytest.mark.parametrize(("said", "written"), [("48,500", "48500"), ("48500", "48.500"), ("1 250 000", "1,250,000")])
def test_a_number_is_found_however_its_digits_are_grouped(memory: Memory, said: str, written: str) -> None:
    memory.observe(ANNA, {"role": "user", "content": f"I earn {said} euros a year.", "id": "m1"})
    memory.summaries.write(ANNA, f"Anna likes tea. Her salary was {written} when she began.")
    assert memory.forget(ANNA, "m1", verify=True).verified
    (stream,) = memory.streams.list(user="anna")
    assert stream.summary == "Anna likes tea."
