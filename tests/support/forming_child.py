"""Processes that form memories and are killed on the way. Each speaks JSON, line by line."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count, pairwise
from pathlib import Path

from children import say, wait
from tests.support.steps import Steps

import eunoe
from eunoe.form import extraction
from eunoe.form.chunk import Proposal
from eunoe.form.turns import TurnReading
from eunoe.memory import Memory
from eunoe.model.atom import Record, source_place
from eunoe.model.scope import Scope
from eunoe.model.stream import Target
from eunoe.recall import request, search
from eunoe.records.identity import all_tombstone_identities
from eunoe.store.contract import ItemQuery
from eunoe.store.schema import Absorption, Job, RevisionRecord, SessionState
from eunoe.store.sqlite import SqliteStore

TALKS = [Scope(agent="cook", session=f"s{number}", user="anna") for number in range(2)]
USER = Scope(agent="cook", user="anna")
READY = (search, request)
"""Loaded before the first fork, so that no child has to."""
_ROUNDS = 40
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "BEGIN IMMEDIATE", "COMMIT")


def words(*seed: object) -> str:
    """A sentence like no other."""
    digest = hashlib.sha256(repr(seed).encode()).hexdigest()
    return " ".join(digest[place : place + 6] for place in range(0, 30, 6))


def one_each(targets: Sequence[Target], readings: Sequence[TurnReading]) -> list[Proposal]:
    """One memory for every turn in every stream, after some thought."""
    time.sleep(0.001)
    return [
        Proposal(place, "observation" if target.user else "fact", f"{turn.text} {target.preset}", (turn.id,))
        for place, target in enumerate(targets)
        for turn, *_ in readings
    ]


def opened(path: str | Path) -> Memory:
    extraction.extract_extractively = one_each
    return eunoe.open(path, embedder="none", llm="none", form=False)


def prepare(path: str | Path) -> None:
    """An empty store whose conversations are formed in small pieces."""
    with opened(path) as memory:
        memory.streams.set_preset("session", formation_messages=3, formation_minimum=2, chunk_tokens=20)


class State:
    """What a store says about its conversations, and what is wrong with that."""

    def __init__(self, path: str | Path) -> None:
        store = Steps(SqliteStore(path))
        self.faults: list[str] = []
        self.stored = self.formed = self.due = self.revisions = 0
        try:
            with store.reading():
                for talk in TALKS:
                    self._look(store, talk)
                self._read(store)
        finally:
            store.close()

    def _look(self, store: SqliteStore, talk: Scope) -> None:
        stream = store.stream(talk)
        if stream is None:
            return
        messages = store.select(ItemQuery(stream=stream.id, kinds=("message",)))
        sessions = store.load(SessionState, stream=stream.id)
        if not sessions:
            self.faults.append(f"{talk} has messages and no session")
            return
        (session,) = sessions
        pieces = sorted(store.load(Job, stream=stream.id))
        if any(after.start < before.stop for before, after in pairwise(pieces)):
            self.faults.append(f"pieces of {talk} overlap: {pieces}")
        if any(piece.stop > session.cursor for piece in pieces):
            self.faults.append(f"a piece of {talk} reaches beyond the cursor {session.cursor}: {pieces}")
        waiting = [row for row in messages if row.seq > session.cursor]
        if session.messages != len(waiting):
            self.faults.append(f"{talk} counts {session.messages} messages, {len(waiting)} wait")
        due = {row.id for row in waiting} | {
            row.id for row in messages for piece in pieces if piece.start < row.seq <= piece.stop
        }
        self.stored += len(messages)
        self.due += len(due)
        self.formed += len(messages) - len(due)
        for owner in (talk, USER):
            self._compare(store, owner, talk, messages, due)

    def _read(self, store: SqliteStore) -> None:
        """The user's summary holds exactly what its revisions took in, each once."""
        stream = store.stream(USER)
        if stream:
            revisions = store.load(RevisionRecord, stream=stream.id)
            taken = [(id, revision.number) for revision in revisions for id in revision.absorbed]
            held = [(absorption.id, absorption.revision) for absorption in store.load(Absorption, stream=stream.id)]
            if sorted(taken) != sorted(held):
                self.faults.append(f"{USER} has absorbed {held}, its revisions {taken}")
            self.revisions = len(revisions)

    def _compare(
        self, store: SqliteStore, owner: Scope, talk: Scope, messages: Sequence[Record], due: set[str]
    ) -> None:
        """Every formed message bears out exactly one atom, a due one bears out none. One whose atom was forgotten here
        bears out none."""
        borne = Counter[str]()
        stream = store.stream(owner)
        for record in store.select(ItemQuery(stream=stream.id, supported=True)) if stream else []:
            for group in record.supports:
                borne.update(id for name in group for place, id in [source_place(name, owner)] if place == talk)
        wanted = {row.id: int(row.id not in due) for row in messages}
        for row in messages:
            learned = all_tombstone_identities(f"{row.text} {'session' if owner == talk else 'user'}")
            if stream and not borne[row.id] and store.tombstones(stream.id, learned):
                wanted[row.id] = 0
        wrong = {id: (borne[id], number) for id, number in wanted.items() if borne[id] != number}
        if wrong or set(borne) - set(wanted):
            self.faults.append(f"atoms of {owner} rest on {wrong} (is, should be) and {set(borne) - set(wanted)}")


def finished(path: str | Path) -> State:
    """Forms everything that is left, whoever held it last."""
    deadline = time.monotonic() + 120
    with opened(path) as memory:
        while State(path).due and time.monotonic() < deadline:
            for talk in TALKS:
                report = memory.form(talk)
                assert not report.failed, report.failed
    return State(path)


def forked(act: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            act()
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    return pid


def chatter(path: str, seed: str, told: int) -> None:
    """Observes and forms without end; tells of each verb that is done."""
    choose = random.Random(seed)
    with opened(path) as memory:
        for number in count():
            talk = choose.choice(TALKS)
            size = choose.randint(1, 4)
            memory.observe(talk, [{"role": "user", "content": words(seed, number, place)} for place in range(size)])
            os.write(told, b".")
            if choose.random() < 0.7:
                memory.form(talk, force=choose.random() < 0.5)
                os.write(told, b".")


def kill(folder: str, kills: str, seed: str) -> None:
    """Kills a process at random points, again and again, and looks at what it left each time."""
    choose = random.Random(seed)
    path, total = Path(folder) / "none", Counter[str]()
    for number in range(int(kills)):
        if number % _ROUNDS == 0:
            path = Path(folder) / f"{number}.db"
            prepare(path)
        status = killed(lambda told: chatter(str(path), f"{seed}-{number}", told), choose)  # noqa: B023
        state = State(path)
        faults = state.faults if os.WIFSIGNALED(status) else ["it ended by itself", *state.faults]
        if number % _ROUNDS == _ROUNDS - 1 or number == int(kills) - 1:
            left = finished(path)
            faults = [*faults, *left.faults, *([f"{left.due} are still due"] if left.due else [])]
            total.update(stored=left.stored, formed=left.formed, revisions=left.revisions)
        if faults:
            say(kill=number, faults=faults)
    say(done=int(kills), **total)


def killed(act: Callable[[int], None], choose: random.Random) -> int:
    """Lets a process do a few things, and kills it at any moment of the next one."""
    heard, told = os.pipe()
    pid = forked(lambda: act(told))
    os.close(told)
    for _ in range(choose.randint(0, 6)):
        os.read(heard, 1)
    time.sleep(choose.uniform(0.0, 0.03))
    os.kill(pid, signal.SIGKILL)
    os.close(heard)
    return os.waitpid(pid, 0)[1]


def points(folder: str) -> None:
    """Ends a process before every single statement that writes while it forms, one after the other."""
    base = Path(folder) / "base.db"
    prepare(base)
    with opened(base) as memory:
        memory.observe(TALKS[0], [{"role": "user", "content": words(place)} for place in range(3)])
    for number in count(1):
        path = Path(folder) / "point.db"
        for end in ("", "-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        shutil.copy(base, path)
        _, status = os.waitpid(forked(lambda: stop_at(path, number)), 0)  # noqa: B023
        ended = os.waitstatus_to_exitcode(status)
        state = State(path)
        left = finished(path)
        faults = [*state.faults, *left.faults]
        if left.formed != 3 or ended not in (0, 9):
            faults.append(f"{left.formed} of 3 messages are formed after exit {ended}")
        if faults:
            say(point=number, faults=faults)
        if ended != 9:
            break
    say(done=number)


def stop_at(path: Path, number: int) -> None:
    """Forms everything, but ends without a word before the n-th statement that writes."""
    left = iter(range(1, number))
    connect = SqliteStore._connect

    def look(statement: str) -> None:
        if statement.startswith(_WRITES) and not next(left, 0):
            os._exit(9)

    def traced(store: SqliteStore) -> sqlite3.Connection:
        connection = connect(store)
        connection.set_trace_callback(look)
        return connection

    SqliteStore._connect = traced  # type: ignore[method-assign]
    with opened(path) as memory:
        assert not memory.form(TALKS[0]).failed


def fill(path: str, size: str) -> None:
    """A store with conversations that wait to be formed."""
    prepare(path)
    with opened(path) as memory:
        for talk in TALKS:
            memory.observe(talk, [{"role": "user", "content": words(talk, place)} for place in range(int(size))])


def look(path: str) -> None:
    state = State(path)
    say(faults=state.faults, stored=state.stored, formed=state.formed)


def rival(path: str, calls: str) -> None:
    """Forms one conversation as soon as it is told to, beside others who do the same; notes what it was asked."""

    def noted(targets: Sequence[Target], readings: Sequence[TurnReading]) -> list[Proposal]:
        with Path(calls).open("a") as file:
            file.write("".join(f"{reading.turn.id}\n" for reading in readings))
        return one_each(targets, readings)

    with opened(path) as memory:
        extraction.extract_extractively = noted
        say(ready=True)
        wait()
        reports = [memory.form(talk) for talk in TALKS]
        say(messages=sum(report.messages for report in reports), failed=[r for one in reports for r in one.failed])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
