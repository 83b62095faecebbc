"""Corrections by hand act at once, count for what is like them in their own scope, and go with the words."""

from __future__ import annotations

import io
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eunoe
from eunoe.errors import AccessError, ConflictError, InputError, NotFoundError
from eunoe.memory import Memory

ANNA = "agent=cook/user=anna"
TALK = "agent=cook/session=s1/user=anna"
LATER = "agent=cook/session=s2/user=anna"
BEN = "agent=cook/session=s3/user=ben"
LUNCH = "I had pasta for lunch."
DINNER = "I had soup for dinner."
WORK = "I work as a nurse in Turin."


@pytest.fixture
def memory() -> Any:
    with eunoe.open(":memory:", llm="none", form=False) as opened:
        yield opened


def say(memory: Memory, *texts: str, scope: str = TALK) -> list[str]:
    ids = [receipt.id for receipt in memory.observe(scope, texts)]
    memory.form(scope)
    return ids


def learned(memory: Memory, scope: str = ANNA) -> list[tuple[str, str]]:
    return [(atom.label, atom.text) for atom in memory.list(scope, kinds=["fact", "observation"], exact=True).items]  # type: ignore[union-attr]


def news(memory: Memory, scope: str, *texts: str) -> set[str]:
    """What would be learned of texts for the user: a session learns something of whatever is said."""
    found = memory.preview(scope, texts).items
    return {atom.text.partition(": ")[2] for atom in found if atom.scope and "session" not in atom.scope.pairs}


def reasons(memory: Memory, scope: str, *texts: str) -> list[str]:
    return [each.reason for each in memory.preview(scope, texts).passed_over]


def test_a_drop_archives_what_was_learned_and_leaves_the_log(memory: Memory) -> None:
    said, _ = say(memory, WORK, "I am allergic to peanuts.")
    made = memory.corrections.add(TALK, said, "drop")
    assert [text for _, text in learned(memory)] == ["anna: I am allergic to peanuts."]
    assert all(text != f"anna: {WORK}" for _, text in learned(memory, TALK))
    assert len(made.changed) == 2
    assert memory.get(TALK, said).text == WORK
    assert [hit.kind for hit in memory.recall([ANNA, TALK], "a nurse in Turin", limit=1)] == ["message"]


def test_a_keep_learns_what_was_passed_over(memory: Memory) -> None:
    said = say(memory, LUNCH)[0]
    assert learned(memory) == []
    made = memory.corrections.add(TALK, said, "keep")
    (atom,) = memory.list(ANNA, exact=True).items
    assert atom.text == f"anna: {LUNCH}"
    assert atom.id in made.changed
    assert memory.status().due_messages == 0
    assert memory.corrections.add(TALK, said, "keep").changed == ()


def test_another_kind_is_a_new_version(memory: Memory) -> None:
    say(memory, WORK)
    (before,) = memory.list(ANNA, exact=True).items
    memory.corrections.add(ANNA, before.id, "decision")
    (after,) = memory.list(ANNA, exact=True).items
    assert isinstance(after, eunoe.Atom)
    assert (after.label, after.text, after.source) == ("decision", before.text, before.source)  # type: ignore[union-attr]
    assert [version.label for version in memory.history(ANNA, after.id)] == ["fact", "decision"]


def test_a_message_that_still_waits_is_formed_as_it_was_corrected(memory: Memory) -> None:
    lunch, loves = (receipt.id for receipt in memory.observe(TALK, [LUNCH, WORK]))
    memory.corrections.add(TALK, lunch, "plan")
    memory.corrections.add(TALK, loves, "drop")
    memory.form(TALK)
    assert learned(memory) == [("plan", f"anna: {LUNCH}")]


def test_a_memory_is_dropped_in_every_stream_and_kept_again(memory: Memory) -> None:
    say(memory, WORK)
    (atom,) = memory.list(ANNA, exact=True).items
    memory.corrections.add(ANNA, atom.id, "drop")
    assert learned(memory) == learned(memory, TALK) == []
    kept = memory.corrections.add(ANNA, atom.id, "keep")
    assert learned(memory) == [("fact", f"anna: {WORK}")]
    assert [text for _, text in learned(memory, TALK)] == [f"anna: {WORK}"]
    assert len(kept.changed) == 2
    assert [each.verdict for each in memory.corrections.list(ANNA)] == ["keep"]


def test_what_was_archived_at_another_time_is_not_brought_back_with_a_memory(memory: Memory) -> None:
    say(memory, WORK)
    (atom,) = memory.list(ANNA, exact=True).items
    memory.corrections.add(ANNA, atom.id, "drop")
    memory.streams.unarchive(ANNA, atom.id)
    memory.corrections.add(ANNA, atom.id, "drop")
    assert memory.corrections.add(ANNA, atom.id, "keep").changed == (atom.id,)
    assert learned(memory, TALK) == []


def test_it_counts_for_like_sentences_and_no_others(memory: Memory) -> None:
    like = ["I ate soup for dinner.", "I had a sandwich for breakfast."]
    unlike = ["I'm allergic to pasta.", "I moved to Rome in May.", "I never eat meat.", WORK]
    said = say(memory, LUNCH)[0]
    known = news(memory, LATER, *unlike)
    assert not news(memory, LATER, *like)
    memory.corrections.add(TALK, said, "keep")
    assert news(memory, LATER, *like) == set(like)
    memory.corrections.add(TALK, said, "drop")
    assert not news(memory, LATER, *like)
    assert reasons(memory, LATER, like[1]) == [f"by your correction of '{LUNCH}'"]
    assert news(memory, LATER, *unlike) == known >= {"I'm allergic to pasta.", "I moved to Rome in May."}


def test_the_preview_says_that_a_correction_decided(memory: Memory) -> None:
    said = say(memory, LUNCH)[0]
    memory.corrections.add(TALK, said, "fact")
    page = memory.preview(LATER, ["I had soup for dinner."])
    assert set(page.corrected) == {atom.id for atom in page.items} != set()
    assert set(page.corrected.values()) == {LUNCH}
    assert {atom.label for atom in page.items} == {"fact"}


def test_what_matters_for_health_is_dropped_only_in_its_own_words(memory: Memory) -> None:
    nuts = "I am allergic to peanuts."
    memory.corrections.add(TALK, say(memory, nuts)[0], "drop")
    assert news(memory, LATER, nuts, "I am allergic to walnuts.") == {"I am allergic to walnuts."}


def test_an_instruction_can_be_dropped(memory: Memory) -> None:
    order = "Please always answer in short bullet points."
    said = say(memory, order)[0]
    memory.corrections.add(TALK, said, "keep")
    assert order in memory.context(LATER).static
    memory.corrections.add(TALK, said, "drop")
    assert order not in memory.context(LATER).static
    assert news(memory, LATER, "Please always answer in short paragraphs.") == set()


def test_of_contradicting_corrections_the_later_one_counts(memory: Memory) -> None:
    said = say(memory, LUNCH)[0]
    for verdict, found in [("keep", {DINNER}), ("drop", set()), ("plan", {DINNER})]:
        memory.corrections.add(TALK, said, verdict)  # type: ignore[arg-type]
        assert news(memory, LATER, DINNER) == found
    assert [each.verdict for each in memory.corrections.list(ANNA)] == ["plan"]


def test_a_sentence_of_a_message_can_be_meant(memory: Memory) -> None:
    said = say(memory, f"{WORK} I live in Oslo.")[0]
    memory.corrections.add(TALK, said, "drop", sentence="I work as a nurse in Turin")
    assert [text for _, text in learned(memory)] == ["anna: I live in Oslo."]
    with pytest.raises(InputError, match="no part of the message"):
        memory.corrections.add(TALK, said, "drop", sentence="I work as a nurse in Rome")


def test_a_removed_correction_counts_no_more(memory: Memory) -> None:
    made = memory.corrections.add(TALK, say(memory, WORK)[0], "drop")
    assert made.scope == eunoe.Scope.parse(ANNA)
    memory.corrections.remove(ANNA, made.id)
    assert memory.corrections.list(ANNA) == []
    assert news(memory, LATER, WORK) == {WORK}
    with pytest.raises(NotFoundError):
        memory.corrections.remove(ANNA, made.id)


def test_it_is_no_memory(memory: Memory) -> None:
    made = memory.corrections.add(TALK, say(memory, LUNCH)[0], "drop")
    assert memory.recall(ANNA, LUNCH, expired=True, exact=True) == []
    assert memory.list(ANNA, exact=True).items == ()
    assert memory.status().facts == 0
    for verb in (memory.streams.unarchive, lambda scope, id: memory.corrections.add(scope, id, "keep")):
        with pytest.raises(InputError, match="is a correction"):
            verb(ANNA, made.id)


SCOPES = [ANNA, TALK, LATER, "agent=cook/session=s1/user=ben", "agent=guide/session=s1/user=anna", "tenant=x/user=anna"]
SENTENCES = [LUNCH, WORK, "I moved to Rome.", "Please keep recipes short.", "Thanks a lot!"]


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(SENTENCES), st.sampled_from(["keep", "drop", "plan"])), min_size=1))
def test_corrections_of_one_scope_never_change_the_reading_of_another(made: list[tuple[str, Any]]) -> None:
    others = [scope for scope in SCOPES if scope not in (ANNA, TALK, LATER)]
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        before = {scope: sorted(news(memory, scope, *SENTENCES)) for scope in others}
        for text, verdict in made:
            memory.corrections.add(TALK, memory.observe(TALK, text)[0].id, verdict)
        assert {scope: sorted(news(memory, scope, *SENTENCES)) for scope in others} == before
        assert {str(each) for each in memory.scopes()} == {ANNA, TALK}
        text, verdict = made[-1]
        assert (text in news(memory, LATER, text)) == (verdict != "drop")


def test_in_a_group_it_counts_for_who_spoke(memory: Memory) -> None:
    group = "agent=cook/session=dinner"
    lines = [{"role": "user", "user": user, "content": WORK} for user in ("anna", "ben")]
    anna = memory.observe(group, lines)[0].id
    assert memory.corrections.add(group, anna, "drop").scope == eunoe.Scope.parse(ANNA)
    memory.form(group)
    assert learned(memory) == []
    assert learned(memory, "agent=cook/user=ben") == [("fact", f"ben: {WORK}")]


def test_a_restricted_memory_keeps_it_within_its_bounds(memory: Memory) -> None:
    said = say(memory, WORK)[0]
    bounded = memory.restricted(scopes=TALK)
    assert bounded.corrections.add(TALK, said, "drop").scope == eunoe.Scope.parse(TALK)
    assert memory.corrections.list(ANNA) == []
    assert news(memory, LATER, WORK) == {WORK}
    with pytest.raises(AccessError):
        bounded.corrections.add(ANNA, said, "drop")
    with pytest.raises(AccessError):
        memory.restricted(rights=["read"]).corrections.add(TALK, said, "drop")


def test_what_is_not_there_cannot_be_corrected(memory: Memory) -> None:
    said, other = say(memory, WORK)[0], say(memory, LUNCH, scope=BEN)[0]
    for scope, id in [(TALK, "nothing"), (TALK, other), (BEN, said), ("user=nobody", said)]:
        with pytest.raises(NotFoundError):
            memory.corrections.add(scope, id, "drop")
    memory.forget(TALK, said)
    with pytest.raises(NotFoundError):
        memory.corrections.add(TALK, said, "keep")
    assert memory.corrections.list(ANNA) == memory.corrections.list("user=nobody") == []


def test_a_pinned_or_superseded_memory_is_left_alone(memory: Memory) -> None:
    old = memory.remember(ANNA, "Anna lives in Paris.").id
    memory.pin(ANNA, old)
    with pytest.raises(ConflictError, match="pinned"):
        memory.corrections.add(ANNA, old, "drop")
    memory.update(ANNA, old, "Anna lives in Rome.")
    with pytest.raises(ConflictError, match="closed"):
        memory.corrections.add(ANNA, old, "drop")
    assert memory.corrections.list(ANNA) == []


def test_a_secret_is_never_kept(memory: Memory) -> None:
    said = say(memory, "My password is hunter2.")[0]
    with pytest.raises(InputError, match="secret"):
        memory.corrections.add(TALK, said, "keep")
    memory.corrections.add(TALK, say(memory, "My favourite word is hunter.")[0], "keep")
    assert news(memory, LATER, "My password is hunter3.") == set()


def test_a_long_message_is_corrected_by_what_says_most(memory: Memory) -> None:
    text = " ".join(["So it goes on and on."] * 500 + [WORK])
    assert len(text) > 10_000
    made = memory.corrections.add(TALK, say(memory, text)[0], "drop")
    assert WORK in made.sentences
    assert len(made.sentences) <= 8
    endless = say(memory, "x" * 10_000, "word " * 2_000)
    for id in endless:
        assert max(map(len, memory.corrections.add(TALK, id, "drop").sentences)) <= 2000


def test_what_waits_for_review_is_kept_by_a_correction(memory: Memory) -> None:
    memory.streams.configure(ANNA, review="all")
    lunch = say(memory, WORK, LUNCH)[1]
    (atom,) = memory.list(ANNA, exact=True).items
    assert memory.recall(ANNA, "nurse", exact=True) == []
    memory.corrections.add(ANNA, atom.id, "keep")
    assert [hit.text for hit in memory.recall(ANNA, "nurse", exact=True)] == [f"anna: {WORK}"]
    memory.corrections.add(TALK, lunch, "keep")
    assert [hit.text for hit in memory.recall(ANNA, "pasta", limit=1, exact=True)] == [f"anna: {LUNCH}"]


@pytest.mark.parametrize("forget", ["message", "memory", "everything", "person"])
def test_it_is_forgotten_with_the_words(path: Path, forget: str) -> None:
    with eunoe.open(path, llm="none", form=False) as memory:
        said = say(memory, WORK)[0]
        (atom,) = memory.list(ANNA, exact=True).items
        memory.corrections.add(ANNA, atom.id, "decision")
        assert memory.corrections.list(ANNA)
        calls: dict[str, Callable[[], eunoe.ForgetReport]] = {
            "message": lambda: memory.forget(TALK, said, verify=True),
            "memory": lambda: memory.forget(ANNA, atom.id, verify=True),
            "everything": lambda: memory.forget([ANNA, TALK], everything=True, verify=True),
            "person": lambda: memory.forget([ANNA, TALK], person="anna", verify=True),
        }
        report = calls[forget]()
        assert report.verified is (forget != "memory"), "its words stay in the log"
        assert memory.corrections.list(ANNA) == []
        if forget != "memory":
            assert all(b"nurse" not in file.read_bytes() for file in path.parent.iterdir())
            assert not any(WORK in repr(held) for held in memory._engine.corrections._held.values())


def test_a_removed_or_replaced_correction_leaves_no_trace_of_words_forgotten_later(path: Path) -> None:
    with eunoe.open(path, llm="none", form=False) as memory:
        said = say(memory, WORK)[0]
        memory.corrections.add(TALK, said, "drop")
        made = memory.corrections.add(TALK, said, "keep")
        memory.corrections.remove(ANNA, made.id)
        assert memory.forget(TALK, said, verify=True).verified
    assert all(b"nurse" not in file.read_bytes() for file in path.parent.iterdir())


def test_it_survives_reopening_and_travels(path: Path, tmp_path: Path) -> None:
    lines = io.StringIO()
    with eunoe.open(path, llm="none", form=False) as memory:
        memory.corrections.add(TALK, say(memory, LUNCH)[0], "keep")
        memory.admin.export(memory.scopes(), lines)
        memory.admin.backup(tmp_path / "copy.db")
    for source in (path, tmp_path / "copy.db"):
        with eunoe.open(source, llm="none", form=False) as memory:
            assert news(memory, LATER, "I had soup for dinner.") == {"I had soup for dinner."}
            assert memory.admin.check()
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        memory.admin.import_(lines.getvalue().splitlines())
        assert memory.admin.import_(lines.getvalue().splitlines()).stored == 0
        assert [each.sentences for each in memory.corrections.list(ANNA)] == [(LUNCH,)]
        assert news(memory, LATER, "I had soup for dinner.") == {"I had soup for dinner."}


def _correct_elsewhere(path: Path, id: str, verdict: Any) -> None:
    with eunoe.open(path, llm="none", form=False) as memory:
        memory.corrections.add(TALK, id, verdict)


def test_another_process_sees_it_at_once(path: Path) -> None:
    with eunoe.open(path, llm="none", form=False) as memory:
        said = say(memory, LUNCH)[0]
        for verdict, found in [("keep", {DINNER}), ("drop", set())]:
            process = multiprocessing.get_context("spawn").Process(
                target=_correct_elsewhere, args=(path, said, verdict)
            )
            process.start()
            process.join()
            assert process.exitcode == 0
            assert news(memory, LATER, DINNER) == found


def test_without_an_embedder_nearly_the_same_words_count() -> None:
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as memory:
        said = say(memory, WORK)[0]
        assert learned(memory)
        memory.corrections.add(TALK, said, "drop")
        assert learned(memory) == []
        unlike = ["I live in Oslo.", "I am allergic to nurses."]
        assert news(memory, LATER, "I work as a nurse in old Turin.", *unlike) == news(memory, BEN, *unlike)


def test_a_correction_made_without_vectors_counts_with_them(path: Path) -> None:
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        memory.corrections.add(TALK, say(memory, WORK)[0], "drop")
    with eunoe.open(path, llm="none", form=False) as memory:
        memory.admin.reembed("eunoe")
        assert news(memory, LATER, WORK) == set()


def test_a_damaged_or_forged_correction_counts_for_nothing(memory: Memory) -> None:
    for number, kept in enumerate([{"verdict": "burn"}, {}, [], {"verdict": "drop", "places": ["%%"], "model": 7}]):
        memory.remember(ANNA, f"{WORK} {number}", label="correction", metadata={"correction": kept})
    memory.streams.apply_retention(ANNA, keep_best=0, max_age_days=0.0)
    assert news(memory, LATER, "I live in Oslo.") == {"I live in Oslo."}
    assert len(memory.corrections.list(ANNA)) <= 1
