"""EunoeStore beside LangGraph's SqliteStore: the same operations on files of their own, turn by turn in one run."""

import importlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench import Result, StatusLine, silent
from bench.forming import made_up_sentence
from bench.metrics import latency, measure_ms, score_views
from bench.peers import EngineUnavailable
from eunoe.cli.display import View

_DIMENSIONS: Final = 384
_BATCH_SIZE: Final = 500
_WARM_UPS: Final = 3
_LIMIT: Final = 10

Operation = Callable[[Any, int], object]
"""Done on a store, with a number that makes each one different."""


def measure(*, items: int = 10_000, namespaces: int = 10, repeats: int = 300, progress: StatusLine = silent) -> Result:
    """Milliseconds of both stores, and how many times as long SqliteStore takes, without an index and with one."""
    result: Result = {"items": items, "namespaces": namespaces, "repeats": repeats}
    for name, index in (("without_index", None), ("with_index", _index())):
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            stores = {
                "eunoe": stack.enter_context(_eunoe_store(Path(folder), index)),
                "sqlite": stack.enter_context(_sqlite_store(Path(folder), index)),
            }
            for store_name, store in stores.items():
                progress(f"{name}: filling {store_name}")
                _fill(store, items, namespaces)
            progress(f"{name}: measuring")
            result[name] = _compare(stores, _operations(items, namespaces, index is not None), repeats)
    return result


def _index() -> dict[str, Any]:
    # SqliteStore reads `text_fields` where others read `fields`.
    return {"dims": _DIMENSIONS, "embed": _embed, "fields": ["text"], "text_fields": ["text"]}


def _embed(texts: list[str]) -> list[list[float]]:
    """Vectors that cost next to nothing, so that stores are measured and not a model."""
    rows: list[list[float]] = [
        np.random.default_rng(list(text.encode())).random(_DIMENSIONS).tolist() for text in texts
    ]
    return rows


@contextmanager
def _eunoe_store(folder: Path, index: Any) -> Iterator[Any]:
    from eunoe.hosts.langgraph import EunoeStore

    with EunoeStore.from_conn_string(str(folder / "eunoe.db"), index=index, embedder="none") as store:
        yield store


@contextmanager
def _sqlite_store(folder: Path, index: Any) -> Iterator[Any]:
    """As its documentation opens it, on a connection that can load extensions."""
    try:
        store_class = importlib.import_module("langgraph.store.sqlite").SqliteStore
        sqlite = importlib.import_module("sqlite3")
        if not hasattr(sqlite.Connection, "enable_load_extension"):
            sqlite = importlib.import_module("pysqlite3")
    except ImportError as error:
        raise EngineUnavailable(f"not installed: {error}") from error
    connection = sqlite.connect(str(folder / "sqlite.db"), check_same_thread=False, isolation_level=None)
    store = store_class(connection, index=index)
    store.setup()
    yield store
    connection.close()


def _fill(store: Any, items: int, namespaces: int) -> None:
    put = importlib.import_module("langgraph.store.base").PutOp
    for start in range(0, items, _BATCH_SIZE):
        numbers = range(start, min(items, start + _BATCH_SIZE))
        store.batch([put(_namespace(number, namespaces), str(number), _value(number)) for number in numbers])


def _namespace(number: int, namespaces: int) -> tuple[str, ...]:
    return "users", f"user{number % namespaces}"


def _value(number: int) -> dict[str, Any]:
    return {"text": made_up_sentence(number), "number": number, "even": number % 2 == 0}


def _operations(items: int, namespaces: int, has_index: bool) -> dict[str, Operation]:
    def place(number: int) -> tuple[str, ...]:
        return _namespace(number, namespaces)

    operations: dict[str, Operation] = {
        "put": lambda store, number: store.put(place(number), f"new{number}", _value(items + number)),
        "put_again": lambda store, number: store.put(place(number), str(number), _value(items + number)),
        "get": lambda store, number: store.get(place(number), str(number)),
        "search": lambda store, number: store.search(place(number), limit=_LIMIT),
        "filter": lambda store, number: store.search(place(number), filter={"number": number}, limit=_LIMIT),
    }
    if has_index:
        operations["query"] = lambda store, number: store.search(
            place(number), query=made_up_sentence(number), limit=_LIMIT
        )
    return operations


def _compare(stores: dict[str, Any], operations: dict[str, Operation], repeats: int) -> Result:
    """Each operation on both stores in turn, so that what else the machine does hits both alike."""
    result: Result = {}
    for name, operation in operations.items():
        times: dict[str, list[float]] = {store: [] for store in stores}
        for number in range(repeats + _WARM_UPS):
            for store_name, store in stores.items():
                ms = measure_ms(operation, store, number)[1]
                if number >= _WARM_UPS:
                    times[store_name].append(ms)
        figures = {store: latency(ms) for store, ms in times.items()}
        ratio = round(figures["sqlite"]["p50"] / figures["eunoe"]["p50"], 2)
        result[name] = {f"{store}_ms": each for store, each in figures.items()} | {"times_as_fast": ratio}
    return result


def rows(result: Result) -> list[View]:
    """A table for each of the two kinds of store."""
    views: list[View] = []
    for name in ("without_index", "with_index"):
        rows = {
            operation: {
                "EunoeStore p50": each["eunoe_ms"]["p50"],
                "SqliteStore p50": each["sqlite_ms"]["p50"],
            }
            for operation, each in result[name].items()
        }
        ratios = ", ".join(f"{operation} {each['times_as_fast']:.1f}" for operation, each in result[name].items())
        views += score_views(name.replace("_", " "), [rows], f"times as fast: {ratios}", cell="{:.3f} ms")
    return views
