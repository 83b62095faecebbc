"""Flip one bit in each of many stores, and see whether what is then wrong or missing is said.

`python tests/soak/damage.py --files 400 --seed 1`. An ordinary session is held with every file: what it answers is
compared with the answers of the sound file. Each file counts once:

- `unharmed`: every answer is the same
- `announced`: an answer differs, and a typed error or a note said so before the session ended
- `by check`: an answer differs, and only `check` said so
- `silent`: an answer differs, and nothing said so
- `untyped`: something else than an `EunoeError` came out
"""

from __future__ import annotations

import argparse
import io
import logging
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import eunoe
from eunoe.errors import EunoeError

SCOPES = ("user=anna", "user=ben/agent=cook", "user=anna/session=s1", "project=atlas")
QUESTIONS = ("Where does Anna live?", "What was said about the harbour?", "allergy")
PLACES = ("harbour", "market", "garden", "library", "station", "bridge", "museum", "bakery")
FORGOTTEN = "The code of the safe is 4711."
NOW = "2030-01-01"
PAGE_BYTES = 4096
LOG_SHARE = 4
"""Every so many files, the bit is flipped in the write-ahead log of a process that was killed."""


def embed(texts: list[str]) -> list[list[float]]:
    return [[byte - 128.0 for byte in blake2b(text.encode(), digest_size=32).digest()] for text in texts]


def fill(memory: eunoe.Memory, first: int, last: int) -> None:
    """Write what a store holds after some weeks: a log, facts with versions, summaries, things forgotten."""
    for number in range(first, last):
        place = PLACES[number % len(PLACES)]
        for scope in SCOPES[:2]:
            text = f"Message {number}: we met at the {place}, and then {number} more things happened."
            memory.observe(scope, {"content": text, "id": f"m{number}", "session": f"s{number % 3}", "name": "Anna"})
        memory.observe(SCOPES[2], {"content": f"Turn {number} of a talk about the {place}.", "role": "user"})
        memory.remember(SCOPES[0], f"Anna saw number {number} at the {place}.", id=f"f{number}", people=["Anna"])
        memory.remember(SCOPES[1], f"Ben noted {place} {number}.", kind="observation", metadata={"n": number})
    memory.remember(SCOPES[0], f"Anna lives in Rome, house {first}.", id=f"home{first}")
    memory.update(SCOPES[0], f"home{first}", f"Anna lives in Oslo, house {first}.")
    memory.remember(SCOPES[3], "Anna has an allergy to nuts. " * 400, id=f"long{first}")
    memory.remember(SCOPES[0], f"{FORGOTTEN} ({first})", id=f"secret{first}")
    memory.forget(SCOPES[0], f"secret{first}")
    memory.summaries.consolidate(SCOPES[1])
    memory.streams.configure(SCOPES[1], consolidation_trigger=first + 3)


class Template(NamedTuple):
    """A sound store and what a session with it answers."""

    path: Path
    answers: dict[str, Any]


def make_templates(folder: Path) -> tuple[Template, Template]:
    """A store that was closed, and one whose process was killed with a log beside it."""
    closed, killed = folder / "closed.db", folder / "killed.db"
    with eunoe.open(closed, embedder=embed, form=False) as memory:
        fill(memory, 0, 40)
    with eunoe.open(folder / "open.db", embedder=embed, form=False) as memory:
        fill(memory, 0, 20)  # forgetting at its end empties the log
        for number in range(20, 40):
            memory.remember(SCOPES[0], f"Anna saw number {number} once more.", id=f"f{number}")
        for end in ("", "-wal"):
            shutil.copy(f"{folder / 'open.db'}{end}", f"{killed}{end}")
    templates = []
    for path in (closed, killed):
        copy_store(path, folder / "sound.db")
        session = hold_session(folder / "sound.db")
        assert session.is_sound, session
        templates.append(Template(path, session.answers))
    return templates[0], templates[1]


def copy_store(path: Path, target: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{target}{end}").unlink(missing_ok=True)
        if end != "-shm" and Path(f"{path}{end}").exists():
            shutil.copy(f"{path}{end}", f"{target}{end}")


class Session(NamedTuple):
    """What an ordinary session answered, what it was told of damage, and what came out that should not have."""

    answers: dict[str, Any]
    warnings: list[str]
    untyped: list[str]
    damage: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return not (self.warnings or self.untyped or self.damage)


def steps(memory: eunoe.Memory) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The verbs of a session, each by a name."""
    for scope in SCOPES:
        for question in QUESTIONS:
            yield (
                f"recall {scope} {question}",
                lambda scope=scope, question=question: memory.recall(scope, question, now=NOW),
            )
        yield f"context {scope}", lambda scope=scope: memory.context(scope, QUESTIONS[0], now=NOW)
        yield f"list {scope}", lambda scope=scope: memory.list(scope, limit=1000)
        yield f"all {scope}", lambda scope=scope: memory.list(scope, limit=1000, retired=True)
        yield f"revisions {scope}", lambda scope=scope: memory.summaries.revisions(scope)
        yield f"export {scope}", lambda scope=scope: export(memory, scope)
    for id in ("m0", "m7", "f3", "f11", "home0"):
        yield f"get {id}", lambda id=id: memory.get(SCOPES[0], id)
    yield "history", lambda: memory.history(SCOPES[0], "home0")
    yield "scopes", lambda: memory.scopes()
    yield "streams", lambda: memory.streams.list()
    yield "status", lambda: status(memory)


def export(memory: eunoe.Memory, scope: str) -> list[str]:
    file = io.StringIO()
    memory.admin.export(scope, file)
    return [line for line in file.getvalue().splitlines() if '"access"' not in line] or ["nothing"]


def status(memory: eunoe.Memory) -> tuple[Any, ...]:
    status = memory.status()
    return status.scopes, status.messages, status.facts, status.observations, status.retired, status.tombstones


def plain(answer: Any) -> Any:
    """What is compared of an answer."""
    if isinstance(answer, eunoe.Context):
        return answer.text
    if isinstance(answer, eunoe.Hits):
        return [(hit.id, hit.text) for hit in answer]
    return answer.items if isinstance(answer, eunoe.Page) else answer


def hold_session(path: Path) -> Session:
    session = Session({}, [], [], ())
    try:
        with eunoe.open(path, embedder=embed, form=False) as memory:
            for name, step in steps(memory):
                try:
                    answer = step()
                    session.answers[name] = plain(answer)
                    notes = [*getattr(answer, "notes", ()), *getattr(answer, "faults", ())]
                    session.warnings.extend(f"{name}: {note}" for note in notes if "holds nothing" not in note)
                except EunoeError as error:
                    session.answers[name] = session.answers.get(name)
                    session.warnings.append(f"{name}: {type(error).__name__}: {error}")
                except Exception as error:
                    session.untyped.append(f"{name}: {type(error).__name__}: {error}")
            damage = tuple(map(str, memory.admin.check().damage))
            return session._replace(damage=damage)
    except EunoeError as error:
        session.warnings.append(f"open: {type(error).__name__}: {error}")
    except Exception as error:
        session.untyped.append(f"open: {type(error).__name__}: {error}")
    return session


def structure_bytes(path: Path) -> Sequence[int]:
    """The places of what holds a file together: the heads of pages, pointers to cells, the heads of cells."""
    content = path.read_bytes()
    places: list[int] = []
    for start in range(0, len(content), PAGE_BYTES):
        page = content[start : start + PAGE_BYTES]
        head = 100 if start == 0 else 0
        if page[head] not in (2, 5, 10, 13):
            continue
        pointers = head + (12 if page[head] in (2, 5) else 8)
        cells = int.from_bytes(page[head + 3 : head + 5])
        places += range(start + head, start + pointers + 2 * cells)
        for place in range(pointers, pointers + 2 * cells, 2):
            cell = int.from_bytes(page[place : place + 2])
            places += range(start + cell, min(start + cell + 8, len(content)))
    return places


AIMS: dict[str, Callable[[Path], Sequence[int]]] = {
    "any": lambda path: range(path.stat().st_size),
    "structure": structure_bytes,
    "schema": lambda path: range(3 * PAGE_BYTES),
    "header": lambda path: range(100),
}
"""Which bytes may be hit."""


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


class Outcome(NamedTuple):
    word: str
    place: str
    bit: int
    details: Sequence[str]


def attack(folder: Path, templates: tuple[Template, Template], choose: random.Random, number: int, aim: str) -> Outcome:
    is_log = aim == "any" and number % LOG_SHARE == LOG_SHARE - 1
    template = templates[is_log]
    path = folder / "damaged.db"
    copy_store(template.path, path)
    target = Path(f"{path}-wal") if is_log else path
    bit = 8 * choose.choice(AIMS[aim](target)) + choose.randrange(8)
    flip(target, bit)
    session = hold_session(path)
    word, details = judge(session, template)
    return Outcome(word, "log" if is_log else "file", bit, details)


def judge(session: Session, template: Template) -> tuple[str, Sequence[str]]:
    if session.untyped:
        return "untyped", session.untyped
    wrong = [
        f"{name}: {_difference(template.answers[name], answer)}"
        for name, answer in session.answers.items()
        if answer is not None and answer != template.answers[name]
    ]
    if session.warnings:
        return "announced", [*session.warnings, *session.damage]
    if not wrong:
        return ("found by check" if session.damage else "unharmed"), session.damage
    return ("by check" if session.damage else "silent"), [*wrong, *session.damage]


def _difference(expected: Any, found: Any) -> str:
    if isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        return f"{len(expected)} -> {len(found)}: " + str([each for each in found if each not in expected])[:200]
    start = next((place for place, (a, b) in enumerate(zip(str(expected), str(found), strict=False)) if a != b), 0)
    return f"{str(expected)[start : start + 100]!r} -> {str(found)[start : start + 100]!r}"


def run(files: int, seed: int, aim: str = "any", verbose: bool = False) -> Counter[str]:
    logging.getLogger("eunoe").setLevel(logging.CRITICAL)
    choose = random.Random(seed)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        templates = make_templates(folder)
        for number in range(files):
            outcome = attack(folder, templates, choose, number, aim)
            counts[outcome.word] += 1
            if verbose or outcome.word in ("silent", "untyped", "by check"):
                print(
                    f"{number}: {outcome.word} ({outcome.place}, bit {outcome.bit})", *outcome.details[:6], sep="\n    "
                )
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--aim", choices=AIMS, default="any", help="which bytes of the file may be hit")
    parser.add_argument("--verbose", action="store_true", help="tell of every file")
    options = parser.parse_args()
    counts = run(options.files, options.seed, options.aim, options.verbose)
    print(", ".join(f"{word} {count}" for word, count in sorted(counts.items())))
    return 1 if counts["silent"] or counts["untyped"] else 0


if __name__ == "__main__":
    sys.exit(main())
