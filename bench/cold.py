"""How soon a new process answers its first question: with no index, with a kept one, after a deletion, and later on."""

import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np

import eunoe
from bench import Result, StatusLine, silent
from bench.metrics import latency, score_views
from eunoe.apps.projects.memory import DEFAULT_RECIPE, ProjectMemory
from eunoe.cli.display import View

SIZES: Final = (1_000, 5_000, 20_000)

_PROJECT: Final = "bench"
_SCOPE: Final = f"project={_PROJECT}"
_QUESTIONS: Final = 60
_DELETIONS: Final = 9
_BATCH_SIZE: Final = 1000
_DIMENSIONS: Final = 384
_SYLLABLES: Final = (
    "ka", "lo", "mi", "ter", "ban", "dus", "fi", "gor", "hel", "ix", "jan", "kol", "lum", "nor",
    "pas", "quo", "ril", "sten", "tav", "ul", "vor", "wex", "yan", "zer",
)  # fmt: skip
_VERBS: Final = (
    "restarts", "breaks", "logs", "retries", "closes", "opens", "caches", "reads", "writes", "parses", "rejects",
    "accepts",
)  # fmt: skip


class HashedWords:
    """An embedder that costs next to nothing: what it costs to embed a question is not measured here."""

    name = "bench-hashed-words"

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        vectors = np.full((len(texts), _DIMENSIONS), 0.01, np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, crc32(word.encode()) % _DIMENSIONS] += 1
        return vectors

    def embed_query(self, text: str) -> np.ndarray[Any, Any]:
        vector: np.ndarray[Any, Any] = self.embed([text])[0]
        return vector


def made_up_documents(count: int) -> list[str]:
    """Tickets of a company whose services, people and files have names."""
    chance = random.Random(count)

    def word(syllables: int = 2) -> str:
        return "".join(chance.sample(_SYLLABLES, syllables))

    words = [word(chance.choice((2, 3))) for _ in range(6000)]
    people = [f"{word().capitalize()} {word().capitalize()}" for _ in range(count // 8 + 20)]
    services = [f"{word().capitalize()}Service" for _ in range(count // 10 + 20)]
    files = [f"src/{word()}/{word()}.py" for _ in range(count // 4 + 20)]

    def sentence() -> str:
        service, person, file = chance.choice(services), chance.choice(people), chance.choice(files)
        subject, object, queue = (chance.choice(words) for _ in range(3))
        verb = chance.choice(_VERBS)
        return f"The {subject} of {service} {verb} the {object} when {person} edits {file} in the {queue} queue."

    return [
        f"{chance.choice(services)} ticket {number}\n\n" + " ".join(sentence() for _ in range(chance.randint(2, 5)))
        for number in range(count)
    ]


def measure(sizes: Sequence[int] = SIZES, progress: StatusLine = silent) -> Result:
    """Seconds of a first question and milliseconds of later ones, by the number of documents."""
    result: Result = {"recipe": DEFAULT_RECIPE, "sizes": {}}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.db"
            progress(f"writing {size:,} documents")
            with _open(path) as projects:
                documents = made_up_documents(size)
                for start in range(0, size, _BATCH_SIZE):
                    projects.memory.remember_many(_SCOPE, documents[start : start + _BATCH_SIZE])
                work = _make_work(projects)
            progress(f"asking {size:,} documents without an index")
            built = _ask_in_new_process(path, work)
            progress(f"asking {size:,} documents with a kept index")
            kept = _ask_in_new_process(path, work | {"deleted": work["deleted"][_DELETIONS:]})
            without = {"first_without_index_s": built["first_s"], "first_without_index_cpu_s": built["first_cpu_s"]}
            result["sizes"][size] = without | kept
    return result


def rows(result: Result) -> list[View]:
    sizes = result["sizes"].items()
    first = {
        f"{size:,} documents": {
            "built s": figures["first_without_index_s"],
            "CPU s": figures["first_without_index_cpu_s"],
            "kept s": figures["first_s"],
            "kept CPU s": figures["first_cpu_s"],
        }
        for size, figures in sizes
    }
    later = {
        f"{size:,} documents": {
            f"{name} {unit}": figures[f"{key}_{unit.lower().replace(' ', '_')}"]["p50"]
            for name, key in (("later", "warm"), ("delete", "deletion"), ("after it", "after_deletion"))
            for unit in ("ms", "CPU ms")
        }
        for size, figures in sizes
    }
    imports = max(figures["import_s"] for _, figures in sizes)
    imports_cpu = max(figures["import_cpu_s"] for _, figures in sizes)
    remark = f"besides {imports:.2f} s ({imports_cpu:.2f} s of CPU) to import Python modules; no encoder is loaded"
    title = f"of a process that asks a project, recipe {result['recipe']}"
    return [
        *score_views(f"First question {title}", [first], remark, cell="{:.3f}"),
        *score_views(
            f"Later questions, deletions, and questions after these, medians, {title}", [later], "", cell="{:.1f}"
        ),
    ]


def _open(path: Path) -> ProjectMemory:
    return ProjectMemory(eunoe.open(path, embedder=HashedWords(), llm="none", form=False))


def _ask_in_new_process(path: Path, work: Result) -> Result:
    # Both processes use compiled modules, as an installed package does; the first one compiles them.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(path.with_name("compiled"))
    command = [sys.executable, "-m", __name__, str(path), str(time.time())]
    done = subprocess.run(
        command, check=True, input=json.dumps(work), stdout=subprocess.PIPE, text=True, env=environment
    )
    reply: Result = json.loads(done.stdout)
    return reply


class _Duration(NamedTuple):
    """What some work took, in milliseconds: on the clock, and of the processor."""

    wall: float
    cpu: float


def _measure(work: Callable[..., Any], *args: Any) -> _Duration:
    cpu, start = time.process_time(), time.perf_counter()
    work(*args)
    return _Duration((time.perf_counter() - start) * 1000, (time.process_time() - cpu) * 1000)


def _latencies(name: str, durations: Sequence[_Duration]) -> Result:
    walls, cpus = zip(*durations, strict=True)
    return {f"{name}_ms": latency(walls), f"{name}_cpu_ms": latency(cpus)}


def _ask(path: Path, started: float, work: Result) -> Result:
    """What a process that began at a moment measures. It has imported its modules."""
    import eunoe.engine
    import eunoe.index.cache
    import eunoe.recall.search  # noqa: F401

    imported, imported_cpu = time.time() - started, time.process_time()
    questions = work["questions"]
    cpu, start = time.process_time(), time.perf_counter()
    with _open(path) as projects:
        projects.retrieve(_PROJECT, questions[:1])
        first, first_cpu = time.perf_counter() - start, time.process_time() - cpu
        projects.memory.flush()
        warm = [_measure(projects.retrieve, _PROJECT, [question]) for question in questions[1:]]
        deletions, later = [], []
        for id in work["deleted"][:_DELETIONS]:
            deletions.append(_measure(projects.delete, _PROJECT, [id]))
            later.append(_measure(projects.retrieve, _PROJECT, questions[-1:]))
    with closing(sqlite3.connect(path)) as store:
        ((kept,),) = store.execute("SELECT coalesce(sum(length(data)), 0) FROM kept_indexes")
    return {
        "import_s": round(imported, 3),
        "import_cpu_s": round(imported_cpu, 3),
        "first_s": round(first, 3),
        "first_cpu_s": round(first_cpu, 3),
        **_latencies("warm", warm),
        **_latencies("deletion", deletions),
        **_latencies("after_deletion", later),
        "kept_mb": round(kept / 1e6, 1),
    }


def _make_work(projects: ProjectMemory) -> Result:
    """Questions that each name a service and a file, and the documents to be deleted."""
    items = projects.memory.list(_SCOPE, limit=_QUESTIONS).items
    texts = [item.text for item in items]
    questions = [
        f"Why does {text.split()[0]} break when {text.split('edits ')[1].split()[0]} changes?" for text in texts
    ]
    return {"questions": questions, "deleted": [item.id for item in items]}


if __name__ == "__main__":
    print(json.dumps(_ask(Path(sys.argv[1]), float(sys.argv[2]), json.load(sys.stdin))))
