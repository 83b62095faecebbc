"""A memory of Anna whose summaries a scripted model writes."""

from __future__ import annotations

import json

from tests.support.steps import steps_of

import eunoe
from eunoe.llm.contract import ScriptedLlm
from eunoe.model.scope import Scope
from eunoe.records import revisions

ANNA = Scope(user="anna")


class ScriptedMemory:
    """A memory whose summaries a scripted model writes."""

    def __init__(self, path, *answers, **changes):
        self.llm = ScriptedLlm(answers[0] if answers and callable(answers[0]) else list(answers), name="scribe")
        self.opened = eunoe.open(path, embedder="none", llm=self.llm, form=False)
        self.memory = self.opened.__enter__()
        self.store = steps_of(self.memory)
        self.memory.streams.configure(ANNA, **{"consolidation_trigger": 2, **changes})

    def add(self, *texts, **fields):
        atoms = [{"text": text, "kind": "observation", **fields} for text in texts]
        return [receipt.id for receipt in self.memory.remember_many(ANNA, atoms)]

    def consolidate(self, force=True):
        return self.memory.summaries.consolidate(ANNA, force=force)

    @property
    def state(self):
        with self.store.reading():
            return revisions.load_summary(self.store, self.store.stream(ANNA))

    @property
    def lease(self):
        return self.state.lease

    def change_lease(self, **changes):
        with self.store.writing():
            self.store.save([self.state._replace(lease=self.lease._replace(**changes))])

    @property
    def waiting(self):
        with self.store.reading():
            return [record.id for record in revisions.unabsorbed(self.store, self.store.stream(ANNA).id)]

    @property
    def text(self):
        return next((revision.text for revision in self.memory.summaries.revisions(ANNA) if revision.current), None)

    def prompt_data(self, place=-1):
        return json.loads(self.llm.prompts[place].text)
