"""Forming as a whole: whatever is done in whatever order, nothing is lost, mixed up or left behind.

Every message has a word of its own, which tells who said it and where; what a model writes has one too. So each
memory, summary and context tells what it was made from.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.steps import steps_of

import eunoe
from eunoe.errors import ConflictError, LlmError
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.memory import Memory
from eunoe.model.arguments import CONTEXT_FORMATS
from eunoe.model.atom import source_place
from eunoe.model.result import FormReport
from eunoe.model.scope import Scope
from eunoe.records import revisions
from eunoe.records.log import load_session
from eunoe.store.contract import ItemQuery
from eunoe.store.schema import Absorption, Job, RevisionRecord

TALKS = {name: Scope(agent="cook", session=f"s{name}", user=name) for name in ("anna", "ben")}
GROUP = Scope(agent="cook", session="group")
USERS = {name: Scope(agent="cook", user=name) for name in TALKS}
SHARD = Scope(agent="cook", shard="kitchen")
CONVERSATIONS = [*TALKS.values(), GROUP]
SCOPES = [*CONVERSATIONS, *USERS.values(), SHARD]
MARK = re.compile(r"(?:own|group|tip|note|sum|hand)[a-z]+q\d+")
ATOMS = ("fact", "observation")
SAYINGS = [
    "I am allergic to {}.",
    "My favourite colour is {}.",
    "Please always call me {}.",
    "I live in {} with my sister <b>Clara</b> & her cat.",
    "I decided to buy the {} tomorrow ]]> {{}}.",
    "I hate {} and I love {}.",
    "We agreed that the {} is due on 3 May 2026.",
    "ok {}",
]
MOODS = ["good", "good", "good", "silent", "nonsense", "foreign", "mixed", "broken"]


def marks(*texts: str) -> set[str]:
    return {mark for text in texts for mark in MARK.findall(text)}


class MoodyLlm(ScriptedLlm):
    """A model of changing moods. What it writes in each stream bears a mark of its own."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.mood = "good"
        self._count = 0

    def _answer(self, prompt: Prompt) -> Any:
        if self.mood == "broken":
            return LlmError("the server of the model is down")
        if self.mood == "nonsense":
            return "]]{ I am ``` a teapot"
        return getattr(self, f"_{prompt.operation}")(prompt)

    def _query(self, prompt: Prompt) -> Any:
        return {"query": " ".join(sorted(marks(prompt.text))) or None}

    def _consolidation(self, prompt: Prompt) -> Any:
        self._count += 1
        given = json.loads(prompt.text)
        told = [given["summary"], *(each["text"] for each in given["observations"])]
        return "" if self.mood == "silent" else f"Known as sumaq{self._count}: {' '.join(sorted(marks(*told)))}."

    def _extraction(self, prompt: Prompt) -> Any:
        turns = re.findall(r"<turn .*?>(.*?)</turn>", prompt.text, re.DOTALL)
        streams = re.findall(r'<stream number="(\d+)" kind="(\w+)"', prompt.text)
        items = [self._item(stream, kind, turn, text) for stream, kind in streams for turn, text in enumerate(turns, 1)]
        return {"memories": [] if self.mood == "silent" else list(filter(None, items))}

    def _item(self, stream: str, kind: str, turn: int, text: str) -> Any:
        if kind == "agent" and "tip" not in text:
            return None
        if self.mood == "mixed" and turn % 2:
            return {"text": None, "stream": "nowhere"}
        self._count += 1
        return {
            "stream": 99 if self.mood == "foreign" and turn % 2 else int(stream),
            "kind": "fact" if turn % 3 == 0 else "observation",
            "text": f"It was said: {' '.join(sorted(marks(text)))} note{kind}q{self._count}",
            "turns": [turn, 77, -1] if self.mood != "foreign" else [turn, turn - 1],
            "key": "anna/home" if turn % 4 == 0 else None,
            "replaces": [1] if turn % 5 == 0 else [],
            "people": ["Clara"],
        }


class Life:
    """A model of what was said and forgotten, beside the memory."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.stack = ExitStack()
        self.llm = MoodyLlm()
        self.count = 0
        self.said: dict[str, tuple[Scope, str, dict[str, Any]]] = {}
        self.gone: set[str] = set()
        self.company: set[str] = set()
        self.switched_off = False
        self.forgotten: list[tuple[Scope, dict[str, Any]]] = []

    def begin(self, llm: bool) -> None:
        self.path = Path(self.stack.enter_context(tempfile.TemporaryDirectory())) / "memory.db"
        self.memory = self.opened(llm)
        self.stack.callback(lambda: self.memory.close())
        self.memory.streams.configure(SHARD, extraction_prompt="Tips for cooking.", consolidation_trigger=2)
        self.memory.streams.set_preset(
            "session", formation_messages=8, observation_extraction_max=9, consolidation_trigger=2
        )
        self.memory.streams.set_preset("user", observation_extraction_max=9, consolidation_trigger=2)

    def opened(self, llm: bool) -> Memory:
        return eunoe.open(self.path, embedder="none", llm=self.llm if llm else "none")

    def reopen(self, llm: bool) -> None:
        due = self.due()
        self.memory.close()
        self.memory = self.opened(llm)
        assert self.due() <= due, "what is over may be formed when the memory is closed"

    def turn_of_mood(self, mood: str) -> None:
        self.llm.mood = mood

    def observe(self, scope: Scope) -> None:
        batch = [self.message(scope) for _ in range(self.chance.randint(1, 5))]
        before = self.due()
        receipts = self.memory.observe(scope, batch)
        assert {receipt.outcome for receipt in receipts} == {"stored"}
        self.memory.flush()
        for message, receipt in zip(batch, receipts, strict=True):
            (mark,) = marks(message["content"])
            self.said[mark] = scope, receipt.id, message
            self.company |= {message["user"]} if scope == GROUP else set()
        self.check_formed(before | {receipt.id for receipt in receipts}, before)

    def message(self, scope: Scope) -> dict[str, Any]:
        self.count += 1
        who = scope.get("user") or self.chance.choice(sorted(TALKS))
        if self.chance.randint(0, 4) == 0:
            return {"content": f"Always rinse the tip{who}q{self.count} before cooking.", "user": who, "name": who}
        kind = "group" if scope == GROUP else "own"
        text = self.chance.choice(SAYINGS).replace("{}", f"{kind}{who}q{self.count}")
        agent = self.chance.randint(0, 5) == 0 and scope != GROUP
        return {"content": text, "role": "assistant"} if agent else {"content": text, "user": who, "name": who}

    def check_formed(self, most: set[str], least: set[str]) -> None:
        """Work that was begun on its own is done or failed; nothing is due that was not before."""
        assert self.due() <= most
        if self.llm.mood != "broken":
            return
        assert self.due() >= least or self.memory.llm is None

    def form(self, scope: Scope, force: bool) -> None:
        before = self.due()
        report = self.memory.form(scope, force=force)
        after = self.due()
        assert after <= before
        assert len(before - after) == report.messages
        if force and not report.failed:
            assert not after & {id for owner, id, _ in self.said.values() if owner == scope}
        self.check_stored(report)

    def check_stored(self, report: FormReport) -> None:
        held = {atom.id for scope in SCOPES for atom in self.atoms(scope)}
        assert held.issuperset(report.stored)

    def cold(self, idle: int) -> None:
        before = self.due()
        report = self.memory.admin.process_cold_sessions(idle=idle, minimum=1)
        assert len(before - self.due()) == report.messages

    def consolidate(self, scope: Scope, force: bool) -> None:
        before = self.stream(scope)
        try:
            revision = self.memory.summaries.consolidate(scope, force=force)
        except (LlmError, ConflictError):
            assert force
            revision = None
        after = self.stream(scope)
        assert (after and after.summary) == (revision.text if revision else before and before.summary)

    def stream(self, scope: Scope) -> Any:
        return next((stream for stream in self.memory.streams.list(**scope) if stream.scope == scope), None)

    def update(self, scope: Scope) -> None:
        atoms = [atom.id for atom in self.atoms(scope) if atom.retired is None]
        if atoms:
            self.count += 1
            self.memory.update(scope, self.chance.choice(atoms), f"It is handaq{self.count} in truth.")

    def tidy(self, scope: Scope, most: int) -> None:
        self.memory.streams.apply_retention(scope, keep_best=most)

    def unarchive(self, scope: Scope) -> None:
        archived = [atom.id for atom in self.atoms(scope) if atom.retired and not atom.superseded_by]
        if archived:
            try:
                self.memory.streams.unarchive(scope, self.chance.choice(archived))
            except ConflictError:
                return

    def configure(self, scope: Scope, active: bool, trigger: int, words: int) -> None:
        self.switched_off |= not active
        self.memory.streams.configure(
            scope, is_active=active, consolidation_trigger=trigger, consolidated_max_words=words, chunk_tokens=20
        )

    def restore(self, scope: Scope) -> None:
        numbers = [revision.number for revision in self.memory.summaries.revisions(scope)]
        if numbers:
            self.memory.summaries.restore(scope, self.chance.choice(numbers))

    def forget_a_message(self, scope: Scope) -> None:
        ids = [id for owner, id, _ in self.said.values() if owner == scope]
        if ids:
            self.forget(scope, self.chance.choice(ids))

    def forget_an_atom(self, scope: Scope) -> None:
        ids = [atom.id for atom in self.atoms(scope)]
        if ids:
            self.forget(scope, self.chance.choice(ids))

    def forget_a_person(self, scope: Scope, person: str) -> None:
        self.forget(scope, person=person.title())

    def forget_everything(self, scope: Scope) -> None:
        self.forget(scope, everything=True)
        self.company -= self.company if scope == GROUP else set()

    def forget(self, scope: Scope, *ids: str, **what: Any) -> None:
        own = {atom.id: marks(atom.text) for scope in SCOPES for atom in self.atoms(scope)}
        before = self.due()
        report = self.memory.forget(scope, ids, verify=True, **what)
        assert report.traces == ()
        assert report.verified
        assert self.due() == before - set(report.messages)
        for mark, (owner, id, message) in list(self.said.items()):
            if id in report.messages:
                self.gone.add(mark)
                del self.said[mark]
                if not what.get("everything"):
                    self.forgotten.append((owner, message))
        written = {mark for id in report.atoms for mark in own[id] if mark.startswith(("note", "hand"))}
        self.gone |= written - marks(*(atom.text for scope in SCOPES for atom in self.atoms(scope)))
        for file in self.path.parent.iterdir():
            assert not self.gone & marks(file.read_bytes().decode("latin-1")), file.name

    def observe_again_what_was_forgotten(self) -> None:
        for scope, message in self.forgotten:
            assert self.memory.observe(scope, message)[0].outcome == "forgotten"

    def move(self) -> None:
        """An export read into an empty store gives the same memory."""
        out = io.StringIO()
        scopes = self.memory.scopes()
        self.memory.admin.export(scopes, out)
        with eunoe.open(":memory:", embedder="none", llm="none", form=False) as other:
            other.admin.import_(out.getvalue().splitlines())
            for scope in scopes:
                # A list of several scopes goes stream by stream, in the order in which these began here.
                there, here = ({item.id: item for item in self.items(each, scope)} for each in (other, self.memory))
                assert there == here
                assert other.summaries.revisions(scope) == self.memory.summaries.revisions(scope)
            full = set(other.scopes())  # one that was emptied is not there any more
            mine = [replace(one, version=0) for one in self.memory.streams.list() if one.scope in full]
            assert [replace(one, version=0) for one in other.streams.list()] == mine
            if not self.switched_off:
                assert other.status().due_messages == self.memory.status().due_messages

    def items(self, memory: Memory, scope: Scope) -> list[Any]:
        return list(memory.list(scope, limit=10_000, retired=True).items)

    def atoms(self, scope: Scope) -> list[Any]:
        return list(self.memory.list(scope, kinds=ATOMS, limit=10_000, retired=True).items)

    def due(self) -> set[str]:
        """Ids of the messages that are not formed, as the store tells it."""
        store = steps_of(self.memory)
        found = set()
        with store.reading():
            for stream in filter(None, map(store.stream, CONVERSATIONS)):
                session, jobs = load_session(store, stream), store.load(Job, stream=stream.id)
                for record in store.select(ItemQuery(stream.id, kinds=("message",))):
                    is_held = any(job.start < record.seq <= job.stop for job in jobs)
                    if is_held or session is None or record.seq > session.cursor:
                        found.add(record.id)
        return found

    def every_message_is_there_and_what_is_due_is_counted(self) -> None:
        ids = {item.id for scope in CONVERSATIONS for item in self.items(self.memory, scope) if item.kind == "message"}
        assert ids == {id for _, id, _ in self.said.values()}
        if not self.switched_off:  # where nothing may be formed, nothing needs to be counted
            assert self.memory.status().due_messages == len(self.due())

    def no_source_is_gone(self) -> None:
        for scope in SCOPES:
            for atom in self.atoms(scope):
                for name in atom.source:
                    self.memory.get(*source_place(name, scope))

    def nobody_sees_the_words_of_another(self) -> None:
        for name, other in (("anna", "ben"), ("ben", "anna")):
            private = (f"own{other}", f"group{other}")
            for scope in (TALKS[name], USERS[name]):
                assert not self.seen(scope, *self.texts(scope), starting=private)
        alone = self.company if len(self.company) == 1 else set()
        others = tuple(f"own{name}" for name in TALKS if name not in alone)
        assert not self.seen(GROUP, *self.texts(GROUP), starting=others)
        assert not self.seen(SHARD, *self.texts(SHARD), starting=("own", "group"))

    def texts(self, scope: Scope) -> Iterator[str]:
        yield from (item.text for item in self.items(self.memory, scope))
        yield from (revision.text for revision in self.memory.summaries.revisions(scope))

    def seen(self, scope: Scope, *texts: str, starting: tuple[str, ...]) -> set[str]:
        asked = " ".join(sorted(self.said)[-20:])
        shown = [self.memory.context(scope, asked, format=form, sources=True).text for form in CONTEXT_FORMATS]
        assert ET.fromstring(shown[0] or "<nothing/>") is not None
        assert not self.gone & marks(*shown, *texts)
        return {mark for mark in marks(*shown, *texts) if mark.startswith(starting)}

    def what_was_forgotten_is_found_nowhere(self) -> None:
        for mark in sorted(self.gone)[-3:]:
            hits = self.memory.recall(SCOPES, mark, limit=50)
            assert not self.gone & marks(*(hit.text for hit in hits))

    def the_lineage_of_each_summary_is_what_it_absorbed(self) -> None:
        store = steps_of(self.memory)
        with store.reading():
            for stream in filter(None, map(store.stream, SCOPES)):
                chain = revisions.ancestry(store, stream, revisions.load_summary(store, stream).revision)
                lineage = {id for revision in chain for id in revision.absorbed}
                assert {row.id for row in store.load(Absorption, stream=stream.id)} == lineage
                assert store.count(ItemQuery(stream.id, ids=sorted(lineage))) == len(lineage)
                assert all(revision.text.strip() for revision in store.load(RevisionRecord, stream=stream.id))

    def check(self) -> None:
        self.every_message_is_there_and_what_is_due_is_counted()
        self.no_source_is_gone()
        self.nobody_sees_the_words_of_another()
        self.what_was_forgotten_is_found_nowhere()
        self.the_lineage_of_each_summary_is_what_it_absorbed()

    def step(self) -> None:
        name = self.chance.choices(list(STEPS), [weight for weight, _ in STEPS.values()])[0]
        chosen = {key: self.chance.choice(values) for key, values in STEPS[name][1].items()}
        print(name, *chosen.values())
        getattr(self, name)(**chosen)
        self.check()


YES_NO = [True, False]
STEPS: dict[str, tuple[int, dict[str, list[Any]]]] = {
    "observe": (9, {"scope": CONVERSATIONS}),
    "form": (7, {"scope": CONVERSATIONS, "force": [True, True, False]}),
    "cold": (1, {"idle": [0]}),
    "consolidate": (4, {"scope": SCOPES, "force": YES_NO}),
    "update": (2, {"scope": SCOPES}),
    "tidy": (1, {"scope": SCOPES, "most": [1, 2, 3]}),
    "unarchive": (1, {"scope": SCOPES}),
    "restore": (1, {"scope": SCOPES}),
    "configure": (1, {"scope": SCOPES, "active": [True, True, False], "trigger": [1, 4], "words": [3, 60]}),
    "forget_a_message": (3, {"scope": CONVERSATIONS}),
    "forget_an_atom": (3, {"scope": SCOPES}),
    "forget_a_person": (1, {"scope": CONVERSATIONS, "person": list(TALKS)}),
    "forget_everything": (1, {"scope": SCOPES}),
    "observe_again_what_was_forgotten": (1, {}),
    "move": (2, {}),
    "reopen": (2, {"llm": YES_NO}),
    "turn_of_mood": (4, {"mood": MOODS}),
}


@pytest.mark.parametrize("seed", range(int(os.environ.get("EUNOE_TEST_LIVES", "3"))))
def test_whatever_happens_in_whatever_order_the_laws_hold(seed: int) -> None:
    """EUNOE_TEST_LIVES=1000 runs more of them."""
    life = Life(seed)
    with life.stack:
        life.begin(llm=bool(seed % 4))
        for _ in range(40):
            life.step()
