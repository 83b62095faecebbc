"""Kills processes at random moments of every verb, and looks each time at what they left.

    python tests/soak/kills.py --kills 10000 --processes 2

After each kill: what was acknowledged is there, what was under way happened as a whole or not at all, nothing is there
twice, nothing forgotten is back, and the file is sound.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
os.environ |= {"EUNOE_LEASE": "0.02", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from children import act as write  # noqa: E402
from children import embed  # noqa: E402
from forming_child import TALKS, USER, State, finished, forked, killed, one_each, words  # noqa: E402
from tests.store.test_durability import RULES, ExpectedContent  # noqa: E402

import eunoe  # noqa: E402
from eunoe.errors import ConflictError, EunoeError, ModelMismatchError  # noqa: E402
from eunoe.form import extraction  # noqa: E402
from eunoe.memory import Memory  # noqa: E402
from eunoe.store import location  # noqa: E402

ROOM = {"user": "anna"}
"""The scope in which `children.act` writes; conversations are formed in others."""
FRESH = 40
"""Kills before a new file is begun: a small one is quick to look at."""
LOOK = 10
"""Kills before the memory itself is asked, not only the file."""
WRITES = ("observe", "remember", "update", "forget")
ONE_PLACE = "SELECT count(*) - count(DISTINCT stream || ' ' || position) FROM items WHERE kind = 'message'"


def other_embed(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0, len(text) % 11, len(text) % 3] for text in texts]


def opened(path: Path) -> Memory:
    extraction.extract_extractively = one_each
    for model in (embed, other_embed):
        try:
            return eunoe.open(path, embedder=model, llm="none", form=False)
        except ModelMismatchError:
            continue
    raise AssertionError("the store has vectors of neither model")


def talk(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    scope = choose.choice(TALKS)
    memory.observe(scope, [{"role": "user", "content": words(name, place)} for place in range(choose.randint(1, 4))])


def form(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    memory.form(choose.choice(TALKS), force=choose.random() < 0.5)


def consolidate(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    memory.summaries.consolidate(USER, force=choose.random() < 0.5)


def forget_within(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    """Forgets by the user's scope what lies in others within it."""
    ids = [item.id for item in memory.list(ROOM, limit=200).items if item.scope and dict(item.scope) != ROOM]
    if ids:
        memory.forget(ROOM, choose.sample(ids, min(len(ids), choose.randint(1, 3))))


def summarise(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    memory.summaries.write(ROOM, f"Summary {name}.")
    memory.summaries.restore(ROOM, choose.choice(memory.summaries.revisions(ROOM)).number)


def configure(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    memory.streams.configure(ROOM, keep_best=choose.randint(5, 90))
    memory.streams.set_preset("team", owner=["team"], keep_best=choose.randint(5, 90))
    memory.streams.set_incognito({"session": "secret"}, choose.random() < 0.5)


def retain(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    archived = memory.streams.apply_retention(ROOM, exact=True, keep_best=choose.randint(1, 20)).archived
    for id, *_ in archived[:2]:
        try:
            memory.streams.unarchive(ROOM, id)
        except ConflictError:
            continue


def pin(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    items = memory.list(ROOM, limit=50, exact=True).items
    if items:
        memory.pin(ROOM, choose.choice(items).id, choose.random() < 0.5)


def read(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    memory.recall(ROOM, f"item {choose.randint(0, 9)}", limit=3)
    memory.admin.reindex(ROOM)


def reembed(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    memory.admin.reembed(choose.choice([None, embed, other_embed]))


def export(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    if scopes := memory.scopes():
        memory.admin.export(scopes, files.export)
    else:
        files.export.unlink(missing_ok=True)


def import_(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    if files.export.exists():
        memory.admin.import_(files.export)


def backup(memory: Memory, files: Files, choose: random.Random, name: str) -> None:
    memory.admin.backup(files.backup)


VERBS: dict[str, Callable[[Memory, Files, random.Random, str], None]] = {
    each.__name__: each
    for each in (
        *(talk, form, consolidate, forget_within, summarise, configure, retain),
        *(pin, read, reembed, export, import_, backup),
    )
}
"""Beside those of `children.act`, and restoring, which needs the memory closed."""


class Files:
    """The files of one store: itself, its backup and its export, and the journal of the process that works on it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.store, self.backup = folder / "memory.db", folder / "backup.db"
        self.export, self.journal = folder / "export.jsonl", folder / "journal"

    def numbers(self) -> dict[str, int]:
        """Which file each verb that replaces one finds in its place."""
        paths = {"restore": self.store, "backup": self.backup, "export": self.export}
        return {kind: os.stat(path).st_ino for kind, path in paths.items() if path.exists()}


def work(files: Files, seed: str, told: int, may_restore: bool) -> None:
    """Calls verbs without end; notes each before it begins and when it is done, and tells of it."""
    choose, memory = random.Random(seed), opened(files.store)
    journal = os.open(files.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number in count():
        name = f"{seed}-{number}"
        kind = choose.choice([*WRITES * 2, *VERBS, *(["restore"] if may_restore else [])])
        living = memory.list(ROOM, limit=200, exact=True).items
        atoms = [item.id for item in living if item.kind != "message"]
        ids = [item.id for item in choose.sample(living, min(len(living), choose.randint(1, 4)))]
        if (kind == "update" and not atoms) or (kind == "forget" and not ids):
            kind = "remember"
        size, done = choose.randint(1, 8), []
        line = {"begin": kind, "batch": name, "size": size, "ids": ids, "files": files.numbers()}
        os.write(journal, json.dumps(line).encode() + b"\n")
        if kind in WRITES:
            done = write(memory, kind, name, size, ids, choose.choice(atoms) if atoms else "")
        elif kind == "restore":
            memory.close()
            location.restore(files.backup, files.store, keep=False)
            memory = opened(files.store)
        else:
            VERBS[kind](memory, files, choose, name)
        may_restore = may_restore or kind == "backup"
        os.write(journal, json.dumps({"done": name, "ids": done}).encode() + b"\n")
        os.write(told, b".")


class Expected:
    """What one store must hold, by what its processes noted."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.content = ExpectedContent()
        self.saved: ExpectedContent | None = None
        """As it was when the backup that is there was made; None if there is none."""
        self.exported: ExpectedContent | None = None
        self.counts = Counter[str]()

    def note(self, lines: Sequence[dict[str, Any]]) -> list[ExpectedContent]:
        """Follow a journal; return what the store may be now: one content, or two if an import was under way."""
        pending: dict[str, Any] | None = None
        for line in lines:
            kind = (pending or line).get("begin", "")
            if "begin" in line:
                pending = line
                if kind in WRITES:
                    self.content.note(line)
                continue
            pending = None
            self.counts[kind] += 1
            if kind in WRITES:
                self.content.note(line)
            else:
                self._follow(kind)
        kind = pending["begin"] if pending else ""
        if pending and self.files.numbers().get(kind) != pending["files"].get(kind):
            self._follow(kind)  # it was killed, but had put its file in place
        if kind == "import_":
            merged = copy.deepcopy(self)
            merged._follow(kind)
            return [self.content, merged.content]
        return [self.content]

    def _follow(self, kind: str) -> None:
        """Note a verb that was done."""
        if kind == "restore":
            assert self.saved
            self.content = copy.deepcopy(self.saved)
        elif kind == "backup":
            self.saved = copy.deepcopy(self.content)
        elif kind == "export":
            self.exported = copy.deepcopy(self.content)
        elif kind == "import_" and self.exported:
            # What an export holds comes back if a restore has taken it away, but never what was forgotten.
            self.content.stored |= self.exported.stored - self.content.gone
            self.content.sizes = {**self.exported.sizes, **self.content.sizes}


def copy_faults(files: Files, expected: Expected) -> list[str]:
    """Compare the backup and the export that are there with what they must hold of the room."""
    saved = set(room_rows(files.backup)) if files.backup.exists() else set()
    lines = map(json.loads, files.export.read_text().splitlines()) if files.export.exists() else ()
    exported = {line["id"] for line in lines if line.get("scope") == "user=anna" and "id" in line}
    pairs = [("the backup", saved, expected.saved), ("the export", exported, expected.exported)]
    return [f"{name} holds {ids}" for name, ids, known in pairs if ids != (known.stored if known else set())]


def room_rows(path: Path) -> dict[str, sqlite3.Row]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    sql = "SELECT i.* FROM items i JOIN streams s ON s.id = i.stream WHERE s.scope = 'user=anna'"
    rows = {row["id"]: row for row in connection.execute(sql)}
    connection.close()
    return rows


def file_faults(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        found = connection.execute("PRAGMA integrity_check").fetchall()
        faults = [] if found == [("ok",)] else [f"integrity: {found}"]
        rules = {**RULES, "one place, one message": ONE_PLACE}
        return faults + [rule for rule, sql in rules.items() if connection.execute(sql).fetchone()[0]]
    finally:
        connection.close()


def content_faults(files: Files, expected: Expected, contents: Sequence[ExpectedContent]) -> list[str]:
    """Compare the store with what it may be; whichever it is, is what it must be from here on."""
    rows, faults = room_rows(files.store), []
    for content in contents:
        tried = copy.deepcopy(content)
        try:
            tried.compare(rows)
        except (AssertionError, KeyError, ValueError) as error:
            faults.append(f"{type(error).__name__} {error!s:.200}")
        else:
            expected.content = tried
            return []
    return faults


def memory_faults(path: Path, gone: Sequence[str]) -> list[str]:
    """What the memory itself says: nothing twice, nothing forgotten back."""
    with opened(path) as memory:
        items = memory.list(ROOM, limit=10_000, exact=True).items
        texts = Counter(item.text for item in items)
        faults = [f"{text!r:.60} is there {number} times" for text, number in texts.items() if number > 1]
        back = [id for id in gone if any(item.id == id for item in items)]
        faults += [f"{id} is back" for id in back]
        for id in gone[:3]:
            if memory.observe(ROOM, {"id": id, "content": "anything"})[0].outcome != "forgotten":
                faults.append(f"{id} was taken again")
        if sum(revision.current for revision in memory.summaries.revisions(ROOM)) > 1:
            faults.append("two revisions are current")
        return faults


def in_child(look: Callable[[], list[str]]) -> list[str]:
    """Look in a process of its own: one that forks must never have had a thread."""
    heard, told = os.pipe()

    def tell() -> None:
        try:
            faults = look()
        except (EunoeError, AssertionError) as error:
            faults = [f"{type(error).__name__}: {error}"]
        os.write(told, json.dumps(faults).encode()[:60_000])

    pid = forked(tell)
    os.close(told)
    with os.fdopen(heard) as pipe:
        text = pipe.read()
    status = os.waitpid(pid, 0)[1]
    return list(json.loads(text)) if text else [f"looking ended with {status}"]


def run(kills: int, seed: str, folder: Path) -> tuple[list[str], Counter[str]]:
    """Kill so many processes; return what was wrong, and how many verbs were done."""
    choose, faults, counts = random.Random(seed), list[str](), Counter[str]()
    files = Files(folder / "0")
    expected = Expected(files)
    for number in range(kills):
        if number % FRESH == 0:
            counts += expected.counts
            shutil.rmtree(folder, ignore_errors=True)
            files = Files(folder / str(number))
            expected = Expected(files)
            in_child(lambda: prepare(files))  # noqa: B023
        files.journal.write_bytes(b"")
        may_restore = expected.saved is not None
        status = killed(lambda told: work(files, f"{seed}-{number}", told, may_restore), choose)  # noqa: B023
        found = [] if os.WIFSIGNALED(status) else [f"it ended by itself with {os.waitstatus_to_exitcode(status)}"]
        lines = [json.loads(line) for line in files.journal.read_text().splitlines(keepends=True) if line[-1] == "\n"]
        found += in_child(lambda: State(files.store).faults)  # noqa: B023
        found += content_faults(files, expected, expected.note(lines)) + file_faults(files.store)
        found += copy_faults(files, expected)
        if number % LOOK == LOOK - 1:
            gone = sorted(expected.content.gone)[-20:]
            found += in_child(lambda: memory_faults(files.store, gone))  # noqa: B023
        if number % FRESH == FRESH - 1 or number == kills - 1:
            found += in_child(lambda: [*(left := finished(files.store)).faults, *["still due"] * bool(left.due)])  # noqa: B023
        faults += [f"kill {number}: {fault} after {lines[-1:]}" for fault in found]
    return faults, counts + expected.counts


def warm_up(folder: Path) -> None:
    """Call every verb once before the first fork, so that no child has to load modules or read patterns."""
    files, choose = Files(folder / "warm-up"), random.Random("warm-up")
    prepare(files)
    with opened(files.store) as memory:
        for kind in ("observe", "remember"):
            write(memory, kind, kind, 3, [], "")
        for name, verb in VERBS.items():
            verb(memory, files, choose, name)


def prepare(files: Files) -> list[str]:
    with opened(files.store) as memory:
        memory.streams.set_preset("session", formation_messages=3, formation_minimum=2, chunk_tokens=20)
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", default="kills")
    options = parser.parse_args()
    began, reports = time.monotonic(), []
    share = -(-options.kills // options.processes)
    with tempfile.TemporaryDirectory() as folder:
        warm_up(Path(folder))
        for place in range(options.processes):
            heard, told = os.pipe()

            def report(place: int = place, told: int = told) -> None:
                faults, counts = run(share, f"{options.seed}-{place}", Path(folder, str(place)))
                os.write(told, json.dumps([faults[:50], counts]).encode())

            reports.append((forked(report), heard))
            os.close(told)
        faults, counts = list[str](), Counter[str]()
        for pid, heard in reports:
            with os.fdopen(heard) as pipe:
                text = pipe.read()
            if os.waitpid(pid, 0)[1] or not text:
                faults.append("a process ended without a report")
                continue
            found, done = json.loads(text)
            faults += found
            counts += Counter(done)
    seconds = time.monotonic() - began
    print(*faults, sep="\n" if faults else "")
    verbs = ", ".join(f"{name} {number:,}" for name, number in sorted(counts.items()))
    kills = share * options.processes
    print(f"{kills:,} kills in {seconds:,.0f} s ({kills / seconds:.1f} a second), {len(faults)} faults; done: {verbs}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
