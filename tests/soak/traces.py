"""Store and forget at random, and search the raw bytes of the file for whatever was forgotten.

`python tests/soak/traces.py --forgets 3000 --seed 1`. Ids, texts, identities, topics and vectors are searched for: all
that a record has on the disk, but for the fingerprints that a tombstone keeps on purpose. Small pages make SQLite move
more about.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import eunoe

SCOPES = tuple(f"user=u{number}" for number in range(5))
WORKLOADS = ((4096, [3]), (4096, [3, 8]), (1024, [3]), (512, [3, 8, 30]), (4096, [3, 8, 30, 300]))
"""Bytes of a page, and words of a text. Where rows are alike, few pages of rows are rebuilt, and the scrub of those
does not hide what stays on pages of indexes."""
PIECE_CHARACTERS = 24


def embed(texts: list[str]) -> list[list[float]]:
    return [[byte - 128.0 for byte in blake2b(text.encode(), digest_size=64).digest()] for text in texts]


class Report(NamedTuple):
    """How many were forgotten, which of their bytes were found, and how often a forget could not verify itself."""

    forgotten: int
    found: Counter[str]
    unverified: int


def make_store(path: Path, page_bytes: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {page_bytes}")
        connection.execute("VACUUM")


def words(choose: random.Random, count: int) -> str:
    return " ".join(f"{choose.getrandbits(40):x}" for _ in range(count))


def add(memory: eunoe.Memory, choose: random.Random, sizes: list[int]) -> Iterator[tuple[str, str]]:
    """Store some things in one scope; yield the scope and the id of each."""
    scope = choose.choice(SCOPES)
    for _ in range(choose.randint(1, 12)):
        text = words(choose, choose.choice(sizes))
        id = words(choose, 1) if choose.random() < 0.5 else ""
        if choose.random() < 0.5:
            message = {"content": text, "session": words(choose, 1)} | ({"id": id} if id else {})
            yield scope, memory.observe(scope, message)[0].id
        else:
            key = {"memory_key": words(choose, 1)} if choose.random() < 0.3 else {}
            kind = choose.choice(["fact", "observation"])
            yield scope, memory.remember(scope, text, id=id, kind=kind, metadata=key).id


def bytes_of(path: Path, scope: str, ids: list[str]) -> dict[bytes, str]:
    """All that stands in the file of these records alone, and what it is."""
    sql = (
        "SELECT i.id, i.text, i.session, i.topic, v.data FROM items i JOIN streams s ON s.id = i.stream "
        f"LEFT JOIN vectors v ON v.seq = i.seq WHERE s.scope = ? AND i.id IN ({', '.join('?' * len(ids))})"
    )
    found: dict[bytes, str] = {}
    with closing(sqlite3.connect(path)) as connection:
        for id, text, session, topic, vector in connection.execute(sql, (scope, *ids)):
            pieces = (text[start : start + PIECE_CHARACTERS] for start in range(0, len(text), 10 * PIECE_CHARACTERS))
            found |= {piece.encode(): "text" for piece in pieces if len(piece) > PIECE_CHARACTERS // 2}
            found |= {id.encode(): "id", session.encode(): "session", topic or b"": "topic", vector or b"": "vector"}
    found.pop(b"", None)
    return found


def attack(path: Path, choose: random.Random, forgets: int, sizes: list[int]) -> Report:
    found: Counter[str] = Counter()
    forgotten = unverified = 0
    living: list[tuple[str, str]] = []
    with eunoe.open(path, embedder=embed, form=False) as memory:
        while forgotten < forgets:
            living += add(memory, choose, sizes)
            if choose.random() < 0.5:
                continue
            scope = choose.choice(living)[0]
            mine = [id for place, id in living if place == scope]
            ids = choose.sample(mine, min(len(mine), choose.choice([1, 1, 2, 7])))
            expected = bytes_of(path, scope, ids)
            report = memory.forget(scope, ids, verify=True)
            gone = {*report.messages, *report.atoms}
            living = [(place, id) for place, id in living if place != scope or id not in gone]
            forgotten += len(gone)
            unverified += not report.verified
            files = (path, path.with_name(f"{path.name}-wal"))
            content = b"\xff".join(file.read_bytes() for file in files if file.exists())
            found.update(what for piece, what in expected.items() if piece in content)
    return Report(forgotten, found, unverified)


def run(forgets: int, seed: int) -> Report:
    choose = random.Random(seed)
    total = Report(0, Counter(), 0)
    with tempfile.TemporaryDirectory() as folder:
        for number, (page_bytes, sizes) in enumerate(WORKLOADS):
            path = Path(folder) / f"{number}.db"
            make_store(path, page_bytes)
            report = attack(path, choose, forgets // len(WORKLOADS), sizes)
            print(f"pages of {page_bytes} bytes, texts of {sizes} words: {report}")
            total = Report(
                total.forgotten + report.forgotten, total.found + report.found, total.unverified + report.unverified
            )
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forgets", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    report = run(options.forgets, options.seed)
    print(f"{report.forgotten} forgotten, {sum(report.found.values())} traces, {report.unverified} not verified")
    return 1 if report.found or report.unverified else 0


if __name__ == "__main__":
    sys.exit(main())
