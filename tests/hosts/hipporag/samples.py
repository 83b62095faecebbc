"""Documents of HippoRAG's own examples, and folders as it writes them, with a pickle that nobody may open."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from hashlib import md5
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

OLIVER = "Oliver Badman is a politician."
GEORGE = "George Rankin is a politician."
CINDERELLA = "Cinderella attended the royal ball."
GLASS = "The prince used the lost glass slipper to search the kingdom."
FIT = "When the slipper fit perfectly, Cinderella was reunited with the prince."
BIRTHPLACE = "Erik Hort's birthplace is Montebello."
COUNTY = "Montebello is a part of Rockland County."
DOCS = [OLIVER, GEORGE, CINDERELLA]
ALL_DOCS = [*DOCS, "Thomas Marwick is a politician.", GLASS, FIT, BIRTHPLACE, "Marina is born in Minsk.", COUNTY]
QUERIES = [
    "What is George Rankin's occupation?",
    "How did Cinderella reach her happy ending?",
    "What county is Erik Hort's birthplace a part of?",
]
GOLD_DOCS = [[GEORGE], [CINDERELLA, GLASS, FIT], [BIRTHPLACE, COUNTY]]
GOLD_ANSWERS = [["Politician"], ["By going to the ball."], ["Rockland County"]]
OPENIE = [
    {
        "idx": "chunk-1",
        "passage": OLIVER,
        "extracted_entities": ["Oliver Badman", "politician"],
        "extracted_triples": [["Oliver Badman", "is a", "politician"]],
    },
    {"idx": "chunk-2", "passage": GEORGE, "extracted_entities": [], "extracted_triples": []},
]
MODELS = "gpt-4o-mini_nvidia_NV-Embed-v2"


class Trap:
    """A pickle that cannot be opened unnoticed."""

    def __reduce__(self) -> Any:
        return (Path("pickle-was-opened").touch, ())


def put_openie(folder: Path, docs: Any, name: str = "openie_results_ner_gpt-4o-mini.json") -> Path:
    file = folder / name
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(json.dumps({"docs": docs, "avg_ent_chars": 3.0}), encoding="utf-8")
    return file


def put_chunks(folder: Path, texts: Sequence[Any], models: str = MODELS) -> Path:
    file = folder / models / "chunk_embeddings" / "vdb_chunk.parquet"
    file.parent.mkdir(parents=True)
    columns = {
        "hash_id": [f"chunk-{number}" for number in range(len(texts))],
        "content": list(texts),
        "embedding": [[0.5, 0.5]] * len(texts),
    }
    parquet.write_table(pyarrow.table(columns), file)
    (folder / models / "graph.pickle").write_bytes(pickle.dumps(Trap()))
    return file


def put_metadata(folder: Path, metadata: Mapping[str, Any], models: str = MODELS) -> Path:
    file = folder / models / "chunk_metadata.json"
    file.parent.mkdir(exist_ok=True, parents=True)
    by_chunk = {f"chunk-{md5(text.encode()).hexdigest()}": value for text, value in metadata.items()}
    file.write_text(json.dumps(by_chunk), encoding="utf-8")
    return file
