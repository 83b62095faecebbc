"""A store for Agentflow, over an empty memory. Below Python 3.12 there is no Agentflow, and nothing here is run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eunoe.memory import Memory

if TYPE_CHECKING:
    from eunoe.hosts.agentflow import EunoeStore


class _UnsupportedModule(pytest.Module):
    def collect(self) -> Any:
        pytest.skip("Agentflow needs Python 3.12 or later")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return _UnsupportedModule.from_parent(parent, path=module_path) if sys.version_info < (3, 12) else None


@pytest.fixture
def store(memory: Memory) -> EunoeStore:
    from eunoe.hosts.agentflow import EunoeStore

    return EunoeStore(memory)
