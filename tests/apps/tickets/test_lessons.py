"""What tickets left in memory: listed, taken out again, and cleaned of secrets down to the bytes of the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.secret_samples import SECRETS, TOKENS

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.tickets import (
    Director,
    Run,
    RunFolder,
    RunState,
    ScriptedWorker,
    Ticket,
    TicketMemory,
    find_lessons,
    redact_lessons,
    redact_runs,
    revert,
)
from eunoe.apps.tickets.state import Step
from eunoe.llm.contract import ScriptedLlm as Model

TICKET = Ticket("login", "Fix the login", "Names with blanks are refused.", "shop")
PLAN = {"complete": False, "summary": "Find the check.", "next_prompt": "Trim names."}
COMPLETE = {"complete": True, "summary": "Names are trimmed.", "next_prompt": ""}
OLD_ID = "ticket/login/0123456789ab"
SECRET_TEXTS = [sample.text for sample in SECRETS]
LONG_SECRETS = [secret for sample in SECRETS for secret in sample.secrets if len(secret) >= 10]


def run(folder: RunFolder, memory: ProjectMemory, ticket: Ticket = TICKET) -> RunState:
    again = folder.has(ticket.project, ticket.id)
    job = Run(
        ticket,
        Director(Model([PLAN, COMPLETE])),
        ScriptedWorker(["ok"]),
        folder,
        TicketMemory(memory, ticket.project),
        again=again,
    )
    return job.finish()


def keep_old_lesson(memory: ProjectMemory, text: str, id: str = OLD_ID, project: str = "shop") -> None:
    """As a version kept it that did not look for secrets."""
    document: dict[str, Any] = {
        "text": text,
        "id": id,
        "ticket": "login",
        "label": "lesson",
        "time": "2026-01-02T03:04:05Z",
    }
    memory.index(project, [{**document, "metadata": {"outcome": "failed"}}])


def stored_texts(memory: ProjectMemory) -> list[str]:
    return [item.text for item in memory.memory.list({"project": "shop"}, limit=1000).items]


def file_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


class TestLooking:
    def test_lessons_have_their_ticket_outcome_and_words(self, folder: RunFolder, memory: ProjectMemory) -> None:
        state = run(folder, memory)
        memory.index("shop", [{"text": "Names are odd.", "ticket": "login"}, "Something else."])
        run(folder, memory, Ticket("other", "Another thing", "", "shop"))
        lessons = find_lessons(memory, "shop")
        assert [(lesson.ticket, lesson.outcome) for lesson in lessons] == [
            ("login", "completed"),
            ("other", "completed"),
        ]
        assert [lesson.id for lesson in find_lessons(memory, "shop", "login")] == state.memories
        assert lessons[0].text.startswith("Ticket: Fix the login. Names with blanks are refused. Names are trimmed.")
        assert find_lessons(memory, "bank") == []

    def test_a_long_one_is_put_together_from_its_parts(self, folder: RunFolder, memory: ProjectMemory) -> None:
        long = Ticket("long", "Long", "word " * 5_000, "shop")
        run(folder, memory, long)
        (lesson,) = find_lessons(memory, "shop")
        assert len(lesson.parts) > 1
        assert lesson.text == long.document("Names are trimmed. Nobody looked at the result.")


class TestReverting:
    def test_only_what_the_runs_of_the_ticket_wrote_is_taken(self, folder: RunFolder, memory: ProjectMemory) -> None:
        by_hand = memory.index("shop", [{"text": "Login names: see the wiki.", "ticket": "login"}])
        odd = memory.index("shop", [{"text": "Not of a run.", "id": "ticket/login/by-hand", "ticket": "login"}])
        deeper = run(folder, memory, Ticket("login/deeper", "Deeper", "", "shop"))
        elsewhere = run(folder, memory, Ticket("login", "Fix the login", "", "bank"))
        first, second = run(folder, memory), run(folder, memory)
        assert sorted(revert(folder, memory, "shop", "login")) == sorted(first.memories + second.memories)
        left = [item.id for item in memory.memory.list({"project": "shop"}).items]
        assert left == [*by_hand, *odd, *deeper.memories]
        assert [item.id for item in memory.memory.list({"project": "bank"}).items] == elsewhere.memories

    @pytest.mark.parametrize("damage", ["", "{", '{"ticket": {}}', "\0\0\0"])
    def test_a_damaged_state_is_set_aside_and_the_ticket_can_be_run_again(
        self, damage: str, folder: RunFolder, memory: ProjectMemory
    ) -> None:
        state = run(folder, memory)
        place = folder.ticket_folder("shop", "login")
        (place / "state.json").write_text(damage)
        assert revert(folder, memory, "shop", "login") == state.memories
        assert (place / "state.damaged.json").read_text() == damage
        assert not (place / "state.json").exists()
        assert run(folder, memory).run == 2
        assert sorted(path.name for path in place.glob("*.md")) == ["run-001.md", "run-002.md"]


class TestCleaning:
    def test_the_old_words_are_gone_from_every_byte_of_the_store(self, tmp_path: Path) -> None:
        place = tmp_path / "memory"
        with ProjectMemory.open(place, embedder="static", llm="none") as memory:
            for number, text in enumerate(SECRET_TEXTS):
                keep_old_lesson(
                    memory, f"Ticket: Fix the login. It failed with:\n{text}\n", f"ticket/login/{number:012x}"
                )
            memory.index("shop", ["The login is in forms.py, see commit 9f86d081884c7d65."])
            memory.memory.flush()
            memory.retrieve("shop", ["Why did the login fail?"])
        before = file_bytes(place)
        assert [secret for secret in LONG_SECRETS if secret.encode() in before]
        with ProjectMemory.open(place, embedder="static", llm="none") as memory:
            cleaned = redact_lessons(memory, "shop")
            assert {cleaning.trouble for cleaning in cleaned} == {""}
            assert len(cleaned) == len(SECRET_TEXTS)
            while_open = file_bytes(place)
            lessons = find_lessons(memory, "shop")
            assert redact_lessons(memory, "shop") == []
            assert "The login is in forms.py, see commit 9f86d081884c7d65." in stored_texts(memory)
        for left in (while_open, file_bytes(place)):
            assert [secret for secret in LONG_SECRETS if secret.encode() in left] == []
        assert len(lessons) == len(SECRET_TEXTS)
        assert all("[redacted]" in lesson.text for lesson in lessons)

    def test_a_clean_copy_has_all_that_the_old_one_had(self, memory: ProjectMemory) -> None:
        keep_old_lesson(memory, "Ticket: Fix the login. It failed: password=hunter2")
        (old,) = find_lessons(memory, "shop")
        redact_lessons(memory, "shop")
        (new,) = find_lessons(memory, "shop")
        assert new == old._replace(
            id=f"{OLD_ID}-1", text="Ticket: Fix the login. It failed: password=[redacted]", parts=(f"{OLD_ID}-1",)
        )
        atom = memory.memory.get({"project": "shop"}, new.id)
        assert (atom.label, atom.metadata["ticket"]) == ("lesson", "login")

    def test_a_cleaning_that_was_killed_goes_on(self, memory: ProjectMemory) -> None:
        """Killed after the copy was kept and before the old one was forgotten."""
        keep_old_lesson(memory, "Ticket: Fix the login. password=hunter2")
        keep_old_lesson(memory, "Ticket: Fix the login. password=[redacted]", f"{OLD_ID}-1")
        redact_lessons(memory, "shop")
        assert [lesson.id for lesson in find_lessons(memory, "shop")] == [f"{OLD_ID}-1"]

    def test_what_was_cleaned_does_not_come_back_and_other_projects_stay(self, memory: ProjectMemory) -> None:
        for project in ("shop", "bank"):
            keep_old_lesson(memory, "Ticket: Fix the login. password=hunter2", project=project)
        redact_lessons(memory, "shop")
        receipts = memory.keep(
            "shop", [{"text": "Ticket: Fix the login. password=hunter2", "id": OLD_ID, "ticket": "login"}]
        )
        assert [receipt.outcome for receipt in receipts] == ["forgotten"]
        assert "hunter2" in find_lessons(memory, "bank")[0].text

    def test_states_and_logs_are_cleaned_too(self, folder: RunFolder) -> None:
        """Also of earlier runs, and of a state that is damaged."""
        for project in ("shop", "bank"):
            for number in (1, 2):
                state = RunState(Ticket("login", "Fix the login", project=project), number, session="sEsSi0n" * 6)
                state.steps.append(Step(prompt="Go.", answer="\n".join(SECRET_TEXTS), failed=True, decided=True))
                with folder.lock(project, "login"):
                    folder.save(state)
        place = folder.ticket_folder("shop", "login")
        (place / "state.damaged.json").write_text(f'{{"answer": "{TOKENS[0]}')
        cleanings = list(redact_runs(folder, "shop", dry_run=True))
        assert len(cleanings) == 4
        assert list(redact_runs(folder, "shop")) == cleanings
        assert list(redact_runs(folder, "shop")) == []
        left = file_bytes(place)
        assert [secret for secret in LONG_SECRETS if json.dumps(secret)[1:-1].encode() in left] == []
        assert folder.get("shop", "login").session == "sEsSi0n" * 6
        assert TOKENS[0].encode() in file_bytes(folder.ticket_folder("bank", "login"))

    @pytest.mark.parametrize("name", [".state.json.draft", ".run-001.md.draft", ".state.json.4711"])
    def test_a_draft_that_a_killed_process_left_is_seen_and_removed(self, folder: RunFolder, name: str) -> None:
        with folder.lock("shop", "login"):
            folder.save(RunState(Ticket("login", "Fix the login", project="shop"), notes=["password=hunter2"]))
        draft = folder.ticket_folder("shop", "login") / name
        draft.write_text('{"notes": ["password=hunter2')
        cleanings = list(redact_runs(folder, "shop", dry_run=True))
        assert [f"file {draft}" in cleaning.what for cleaning in cleanings].count(True) == 1
        assert draft.exists()
        assert list(redact_runs(folder, "shop")) == cleanings
        assert not draft.exists()
        assert list(redact_runs(folder, "shop")) == []

    def test_a_ticket_that_is_worked_on_is_left_and_named(self, folder: RunFolder) -> None:
        state = RunState(Ticket("login", "Fix the login", project="shop"), notes=["password=hunter2"])
        with folder.lock("shop", "login"):
            folder.save(state)
            cleanings = list(redact_runs(folder))
        assert ["being worked on" in cleaning.trouble for cleaning in cleanings] == [True, True]
        assert "hunter2" in folder.get("shop", "login").notes[0]
