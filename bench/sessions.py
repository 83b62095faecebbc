"""What a recall over all of a user costs: the same memories in one scope, and spread over many sessions."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import eunoe
from bench import Result, StatusLine, silent
from bench.cold import HashedWords, made_up_documents
from bench.metrics import score_views
from eunoe.cli.display import View

SESSIONS: Final = (1, 100, 1000)
MEMORIES: Final = 5000

_USER: Final = "user=anna"
_QUESTIONS: Final = 60
_ROUNDS: Final = 5
"""New processes for each number of sessions, in turn, so that other work on the machine meets all alike."""


def measure(sessions: Sequence[int] = SESSIONS, memories: int = MEMORIES, progress: StatusLine = silent) -> Result:
    """Milliseconds of processor time of the first recall of a process and of later ones, the least of some rounds."""
    documents = made_up_documents(memories)
    best: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in sessions:
            progress(f"writing {memories:,} memories of {count:,} sessions")
            with eunoe.open(Path(folder, f"{count}.db"), embedder=HashedWords(), llm="none", form=False) as memory:
                for number in range(count):
                    scope = _USER if count == 1 else f"session={number}/{_USER}"
                    memory.remember_many(scope, documents[number::count])
        for number in range(_ROUNDS):
            for count in sessions:
                progress(f"asking {count:,} sessions, round {number + 1} of {_ROUNDS}")
                command = [sys.executable, "-m", __name__, str(Path(folder, f"{count}.db")), str(memories)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                figures: dict[str, float] = json.loads(done.stdout)
                known = best.setdefault(count, figures)
                best[count] = {name: min(value, known[name]) for name, value in figures.items()}
    one = best[min(best)]
    return {
        "memories": memories,
        "sessions": best,
        "times_one": {
            count: {name: round(value / one[name], 2) for name, value in own.items()} for count, own in best.items()
        },
    }


def rows(result: Result) -> list[View]:
    rows = {
        f"{count:,} session{'s' * (count > 1)}": {
            f"{name} {what}": figures[name]
            for name in ("first", "later")
            for what, figures in (("CPU ms", own), ("times one", result["times_one"][count]))
        }
        for count, own in result["sessions"].items()
    }
    title = f"Recall over a user with {result['memories']:,} memories, by the number of their sessions"
    return score_views(title, [rows], "no index is kept, no encoder is loaded", cell="{:.2f}")


def _ask(path: Path, memories: int) -> dict[str, float]:
    import eunoe.recall.search

    texts = made_up_documents(memories)[:_QUESTIONS]
    questions = [f"Why does {text.split()[0]} break the {text.split('The ')[1].split()[0]}?" for text in texts]
    times = []
    with eunoe.open(path, embedder=HashedWords(), llm="none", form=False, keep_indexes=False) as memory:
        for question in questions:
            start = time.process_time()
            assert memory.recall(_USER, question)
            times.append((time.process_time() - start) * 1000)
    first, *later = times
    return {"first": round(first, 2), "later": round(sorted(later)[len(later) // 2], 3)}


if __name__ == "__main__":
    print(json.dumps(_ask(Path(sys.argv[1]), int(sys.argv[2]))))
