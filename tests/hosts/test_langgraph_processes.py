"""Stores of several processes on one file."""

from __future__ import annotations

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
