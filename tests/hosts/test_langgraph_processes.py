"""Stores of several processes on one file."""

from __future__ import annotations

import subprocess
import sys

from eunoe.hosts.langgraph import EunoeStore


def test_processes_see_each_others_items_at_once(path, start):
    with EunoeStore.from_conn_string(str(path), embedder="none") as store:
        child = start("share_items", path)
        store.put(("shared", "parent"), "a", {"n": 1})
        assert child.ask("one") == {"found": [["shared", "parent", "a", {"n": 1}]]}
        assert store.get(("shared", "child"), "told").value == {"line": "one"}
        assert store.list_namespaces() == [("shared", "child"), ("shared", "parent")]
        store.delete(("shared", "parent"), "a")
        assert child.ask("two") == {"found": [["shared", "child", "told", {"line": "one"}]]}
        assert [item.value for item in store.search(())] == [{"line": "two"}]


def test_what_was_put_survives_the_end_of_its_process(path, start):
    child = start("put_items", path)
    said = [child.read() for _ in range(20)]
    last = [*said, *child.kill()][-1]["done"]
    with EunoeStore.from_conn_string(str(path), embedder="none") as store:
        assert [item.key for item in store.search(("child", "all"), limit=last + 1)] == [
            str(n) for n in range(last + 1)
        ]
        assert max(store.get(("child", str(place)), "latest").value["n"] for place in range(3)) >= last


def test_without_langgraph_the_rest_works_and_the_adapter_says_what_to_install():
    code = """
import sys
sys.modules["langgraph"] = sys.modules["langgraph.store.base"] = None
import eunoe
try:
    import eunoe.hosts.langgraph
except eunoe.errors.MissingPackageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "eunoe.hosts.langgraph needs LangGraph: pip install 'eunoe[langgraph]'\n"
