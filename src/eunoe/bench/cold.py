"""How soon a new process answers its first question: with no index, with a kept one, after a deletion, and later on."""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import numpy as np

import eunoe
from eunoe.bench import Result, StatusLine
from eunoe.bench.metrics import latency, measure_ms
from eunoe.bench.report import score_views
from eunoe.display.views import View
from eunoe.memory import Memory
from eunoe.model.choices import RecipeName

SIZES: Final = (1_000, 5_000, 20_000)
RECIPE: Final[RecipeName] = "associative"
"""The one that needs most of an index."""

_SCOPE: Final = "project=bench"
_QUESTIONS: Final = 60
_BATCH_SIZE: Final = 1000
_DIMENSIONS: Final = 384
_SYLLABLES: Final = [
    "ka",
    "lo",
    "mi",
    "ter",
    "ban",
    "dus",
    "fi",
    "gor",
    "hel",
    "ix",
    "jan",
    "kol",
    "lum",
    "nor",
    "pas",
    "quo",
    "ril",
    "sten",
    "tav",
    "ul",
    "vor",
    "wex",
    "yan",
    "zer",
]
_VERBS: Final = [
    "restarts",
    "breaks",
    "logs",
    "retries",
    "closes",
    "opens",
    "caches",
    "reads",
    "writes",
    "parses",
    "rejects",
    "accepts",
]


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


def run_cold_bench(sizes: Sequence[int] = SIZES, progress: StatusLine | None = None) -> Result:
    """Seconds of a first question and milliseconds of later ones, by the number of documents."""
    say = progress or (lambda text: None)
    result: Result = {"recipe": RECIPE, "sizes": {}}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.db"
            say(f"writing {size:,} documents")
            with _open(path) as memory:
                documents = made_up_documents(size)
                for start in range(0, size, _BATCH_SIZE):
                    memory.remember_many(_SCOPE, documents[start : start + _BATCH_SIZE])
            say(f"asking {size:,} documents without an index")
            built = _ask_in_new_process(path)
            say(f"asking {size:,} documents with a kept index")
            kept = _ask_in_new_process(path)
            result["sizes"][size] = {
                "import_s": kept["import_s"],
                "first_without_index_s": built["first_s"],
                "first_s": kept["first_s"],
                "first_cpu_s": kept["first_cpu_s"],
                "warm_ms": kept["warm_ms"],
                "after_deletion_ms": kept["after_deletion_ms"],
                "kept_mb": kept["kept_mb"],
            }
    return result


def cold_views(result: Result) -> list[View]:
    rows = {
        f"{size:,} documents": {
            "built s": figures["first_without_index_s"],
            "kept s": figures["first_s"],
            "kept CPU s": figures["first_cpu_s"],
            "deletion ms": figures["after_deletion_ms"],
            "later ms p50": figures["warm_ms"]["p50"],
            "p95": figures["warm_ms"]["p95"],
        }
        for size, figures in result["sizes"].items()
    }
    imports = max(figures["import_s"] for figures in result["sizes"].values())
    remark = f"besides {imports:.2f} s to import Python modules; no encoder is loaded"
    return score_views(f"First question of a process, recipe {result['recipe']}", [rows], remark, cell="{:.3f}")


def _open(path: Path) -> Memory:
    return eunoe.open(path, embedder=HashedWords(), llm="none", form=False)


def _ask_in_new_process(path: Path) -> Result:
    command = [sys.executable, "-m", __name__, str(path), str(time.time())]
    reply: Result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return reply


def _ask(path: Path, started: float) -> Result:
    """What a process that began at a moment measures. It has imported its modules."""
    import eunoe.engine
    import eunoe.index.cache
    import eunoe.recall.search  # noqa: F401

    imported = time.time() - started
    cpu, start = time.process_time(), time.perf_counter()
    with _open(path) as memory:
        questions = _questions(memory)
        memory.recall(_SCOPE, questions[0], recipe=RECIPE)
        first, first_cpu = time.perf_counter() - start, time.process_time() - cpu
        memory.flush()
        times = [measure_ms(memory.recall, _SCOPE, question, recipe=RECIPE)[1] for question in questions[1:]]
        memory.forget(_SCOPE, memory.list(_SCOPE, limit=1).items[0].id)
        _, after = measure_ms(memory.recall, _SCOPE, questions[1], recipe=RECIPE)
    kept = sum(file.stat().st_size for file in path.with_name(f"{path.name}.index").glob("*.index"))
    return {
        "import_s": round(imported, 3),
        "first_s": round(first, 3),
        "first_cpu_s": round(first_cpu, 3),
        "warm_ms": latency(times),
        "after_deletion_ms": round(after, 2),
        "kept_mb": round(kept / 1e6, 1),
    }


def _questions(memory: Memory) -> list[str]:
    """Questions that name a service and a file."""
    documents = [item.text for item in memory.list(_SCOPE, limit=_QUESTIONS).items]
    return [
        f"Why does {text.split()[0]} break when {text.split('edits ')[1].split()[0]} changes?" for text in documents
    ]


if __name__ == "__main__":
    print(json.dumps(_ask(Path(sys.argv[1]), float(sys.argv[2]))))
