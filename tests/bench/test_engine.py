import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.__main__ import run_bench
from bench.peers import ENGINES, PEERS, SUBJECT
from bench.worker import TaskSpec, exact_recall, search_latency
from bench.workload import SearchQuery, Workload

from bench import Result, StatusLine, engine, engine_report

MODULES = {
    "sqlite-vec": "sqlite_vec",
    "sqlite-vec-scan": "sqlite_vec",
    "chroma": "chromadb",
    "lancedb": "lancedb",
    "langgraph-sqlite": "langgraph.store.sqlite",
    "langgraph-memory": "langgraph.store.memory",
    "mem0": "mem0",
}


NO_FIGURES: Result = {"sizes": {}, "unavailable": {}, "goals": {}}


def is_installed(name: str) -> bool:
    try:
        return find_spec(MODULES[name]) is not None
    except ModuleNotFoundError:
        return False


def measure_tiny(peers: list[str], **more: Any) -> Result:
    return engine.measure((60,), peers, False, scopes=3, queries=6, singles=3, seconds=2, **more)


@pytest.fixture(scope="module")
def result() -> Result:
    return measure_tiny(list(PEERS))


def test_workload_is_repeatable_and_unit() -> None:
    one, two = Workload(40, 4), Workload(40, 4)
    first, second = next(one.batches(2)), next(two.batches(2))
    assert first.texts == second.texts
    assert first.matrix.tobytes() == second.matrix.tobytes()
    assert first.lists == first.matrix.tolist()
    np.testing.assert_allclose(np.linalg.norm(first.matrix, axis=1), 1, rtol=1e-5)


def test_memories_differ_between_scopes_and_from_the_singles() -> None:
    work = Workload(40, 4)
    batches = [batch for index in range(4) for batch in work.batches(index)]
    added = [*batches, *work.singles(10)]
    texts = [text for batch in added for text in batch.texts]
    keys = [key for batch in added for key in batch.keys]
    assert len(texts) == len(set(texts)) == len(set(keys)) == 50


def test_queries_know_the_exact_answer() -> None:
    work = Workload(90, 3)
    queries = work.queries(7)
    assert [query.text for query in queries] == [query.text for query in work.queries(7)]
    assert {query.scope for query in queries} == {"scope-0", "scope-1", "scope-2"}
    for query in queries:
        texts, matrix = work.memories(int(query.scope.removeprefix("scope-")))
        cosines = matrix @ query.vector
        assert set(query.truth) == {texts[row] for row in np.argsort(-cosines)[:10] if cosines[row] > 0}


def test_recall_and_latencies() -> None:
    query = SearchQuery("s", "q", np.zeros(2, np.float32), [0.0, 0.0], ("a", "b"))
    assert exact_recall([query, query], [["a", "x"], ["b", "a"]]) == 75
    assert search_latency([1.0, 2.0, 3.0]) == pytest.approx({"p50_ms": 2, "p95_ms": 2.9, "count": 3})


@pytest.mark.parametrize("name", ENGINES)
def test_engine_is_measured_or_named(result: Result, name: str) -> None:
    if name in result["unavailable"]:
        assert name != SUBJECT, result["unavailable"][name]
        assert result["unavailable"][name]
        if is_installed(name):
            assert "cannot load extensions" in result["unavailable"][name]
        return
    figures = result["sizes"]["60"][name]
    assert figures["search"]["count"] == 6
    assert 0 < figures["search"]["p50_ms"] <= figures["search"]["p95_ms"]
    assert figures["batch_adds"]["per_second"] > 0
    assert figures["single_adds"]["per_second"] > 0
    assert figures["rss_mb"]["peak"] > 0
    assert figures["recall@10"] >= 95
    assert (figures["disk_mb"] == 0) == (result["engines"][name]["durability"] == "memory only")


def test_ratios_and_goals_compare_with_eunoe(result: Result) -> None:
    run, ratios = result["sizes"]["60"], result["ratios"]["60"]
    assert set(ratios) == set(run) - {SUBJECT}
    for name, ratio in ratios.items():
        expected = run[name]["search"]["p50_ms"] / run[SUBJECT]["search"]["p50_ms"]
        assert ratio["search_p50"] == pytest.approx(expected, abs=0.001)
    if ratios:
        fastest = min(ratios, key=lambda name: run[name]["search"]["p50_ms"])
        assert result["goals"]["search_p50_at_60"]["fastest_peer"] == fastest


def made_up_figures(search: float, adds: float) -> Result:
    return {
        "search": {"p50_ms": search, "p95_ms": search * 12.5},
        "batch_adds": {"per_second": adds},
        "single_adds": {"per_second": adds / 10},
        "disk_mb": 1234.5,
        "rss_mb": {"peak": 1234.5},
        "recall@10": 100.0,
        "notes": [],
    }


@pytest.fixture
def made_up_result() -> Result:
    """A result in which every engine ran, the scan the fastest to add."""
    run = {name: made_up_figures(100.0 + place, 10_000.0 - place) for place, name in enumerate(ENGINES)}
    run |= {"sqlite-vec-scan": made_up_figures(150.0, 200_000.0), "langgraph-memory": made_up_figures(1.0, 900_000.0)}
    made: Result = {"sizes": {"50000": run}, "unavailable": {}, "workload": {"scopes": 100}}
    made["engines"] = {name: engine.describe_engine(name, {}) for name in ENGINES}
    return made | {"goals": engine_report.check_goals(made)}


def test_adds_are_set_against_the_fastest_and_the_fastest_with_an_index(made_up_result: Result) -> None:
    goals = made_up_result["goals"]
    assert goals["search_p50_at_50000"]["fastest_peer"] == "langgraph-memory"
    every, indexed = goals["batch_adds_at_50000"], goals["batch_adds_among_indexed_at_50000"]
    assert (every["fastest_peer"], every["peer"], every["met"]) == ("sqlite-vec-scan", 200_000.0, False)
    assert (indexed["fastest_peer"], indexed["peer"], indexed["met"]) == ("sqlite-vec", 9_999.0, True)
    remarks = " ".join(engine_report.remarks(made_up_result))
    assert "NOT met: eunoe 10,000.00, sqlite-vec-scan 200,000.00 (the fastest of the durable peers)" in remarks
    assert f"sqlite-vec 9,999.00 (the fastest of the {engine_report.INDEXED_PEERS})" in remarks


@pytest.mark.parametrize("columns", [80, 100])
def test_the_table_is_whole_in_a_narrow_terminal(
    made_up_result: Result, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    engine_report.print_tables(made_up_result)
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= columns
    for words in ("single", "p50 ms", "RSS", "langgraph-memory [2]", "900,000", "[2] memory only"):
        assert words in " ".join(shown.split())


def test_result_is_json_and_tables_name_everything(result: Result, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(json.dumps(result)) == result
    document = engine_report.markdown(result)
    engine_report.print_tables(result)
    shown = capsys.readouterr().out
    assert "index: HNSW; fsync per commit." in document
    for name in ENGINES:
        assert name in document
        assert name in shown


def test_a_peer_that_cannot_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run_worker = engine.run_worker

    def broken(spec: TaskSpec, say: StatusLine) -> Result:
        if spec.engine == "chroma":
            raise engine.WorkerFailed("not installed: chromadb")
        return run_worker(spec, say)

    monkeypatch.setattr(engine, "run_worker", broken)
    lines: list[str] = []
    result = engine.measure((20,), ["chroma"], False, lines.append, scopes=2, queries=2, singles=1, seconds=1)
    assert result["unavailable"] == {"chroma": "not installed: chromadb"}
    assert "chroma: not installed: chromadb" in lines
    assert "chroma is missing: not installed: chromadb" in engine_report.markdown(result)


def test_a_failure_at_scale_costs_no_other_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Result:
        raise engine.WorkerFailed("no room left")

    monkeypatch.setattr(engine, "run_scale_bench", broken)
    result = engine.measure((20,), [], True, scopes=2, queries=2, singles=1, seconds=1)
    assert result["unavailable"] == {"eunoe at scale": "no room left"}
    assert SUBJECT in result["sizes"]["20"]
    assert "million" not in result


def test_limits_reached_are_noted() -> None:
    limited = measure_tiny([], folder=None)["sizes"]["60"][SUBJECT]
    assert limited["notes"] == []
    slow = engine.measure((60,), [], False, scopes=3, queries=20, singles=3, seconds=0)
    notes = " ".join(slow["sizes"]["60"][SUBJECT]["notes"])
    assert "batch adds timed on the first 20" in notes
    assert "10 searches instead of 20" in notes


def test_scale_bench_compares_two_stores_and_opens_a_stream() -> None:
    scale = engine.run_scale_bench(large=(200, 20), small=(50, 5), stream=40, queries=10)
    assert scale["recall"]["warm_ratio"] > 0
    assert scale["recall"]["cold_ratio"] > 0
    assert scale["recall"]["warm"]["large"]["count"] == 10
    assert scale["cold_stream"]["first_process_recall_ms"] > 0
    goals = engine_report.check_goals({"sizes": {}, "million": scale})
    assert set(goals) == {"scale_warm_ratio", "cold_stream_ms"}
    assert len(engine_report.scale_remarks(scale)) == 4


def test_command_prints_json_and_writes_the_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = tmp_path / "engines.md"
    sizes = ["--sizes", "200", "--peers", "none", "--quick", "--queries", "5"]
    assert run_bench(["engine", *sizes, "--json", "--markdown", str(document)]) == 0
    assert list(json.loads(capsys.readouterr().out)["sizes"]) == ["200"]
    assert "| eunoe |" in document.read_text(encoding="utf-8")


def test_command_refuses_an_unknown_peer(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["engine", "--peers", "oracle"]) == 2
    assert "unknown peer oracle" in capsys.readouterr().err


@pytest.mark.parametrize("sizes", ["10x", "1000,many", "0", "-5", "²"])
def test_command_says_how_sizes_are_written(sizes: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["engine", "--sizes", sizes]) == 2
    shown = capsys.readouterr().err
    assert "is not a number of memories" in shown
    assert "invalid literal" not in shown


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The runs that were begun; none takes any time."""
    begun: list[object] = []
    monkeypatch.setattr(engine, "measure", lambda *args, **_: begun.append(args) or NO_FIGURES)
    return begun


@pytest.mark.parametrize("option", ["--markdown", "--plot"])
@pytest.mark.parametrize("place", ["missing/file", "."])
def test_a_file_that_cannot_be_written_is_refused_before_measuring(
    unmeasured: list[object], tmp_path: Path, option: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_bench(["engine", "--json", option, str(tmp_path / place)]) == 1
    assert f"cannot write {tmp_path / place}" in capsys.readouterr().err
    assert unmeasured == []


def test_a_plot_without_matplotlib_is_refused_before_measuring(
    unmeasured: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.__main__.find_spec", lambda name: None)
    assert run_bench(["engine", "--json", "--plot", str(tmp_path / "plot.png")]) == 1
    assert "pip install 'eunoe[bench]'" in capsys.readouterr().err
    assert unmeasured == []


def test_figures_are_printed_before_files_are_written(
    unmeasured: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> str:
        raise OSError("no room left")

    monkeypatch.setattr(engine_report, "markdown", broken)
    assert run_bench(["engine", "--json", "--markdown", str(tmp_path / "table.md")]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out) == NO_FIGURES
    assert "no room left" in shown.err


def test_plot_draws_a_png(result: Result, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib, which only the bench extra brings")
    engine_report.draw_plot(result, tmp_path / "engines.png")
    assert (tmp_path / "engines.png").read_bytes().startswith(b"\x89PNG")


def test_no_peer_is_imported_with_the_bench() -> None:
    code = "import sys, bench.engine; print([m for m in sys.argv[1].split(',') if m in sys.modules])"
    names = "chromadb,lancedb,langgraph,mem0,sqlite_vec,matplotlib"
    done = subprocess.run([sys.executable, "-c", code, names], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
