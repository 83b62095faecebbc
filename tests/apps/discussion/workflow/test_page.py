"""The page on workflows lists all that there is."""

from pathlib import Path

import pytest

from eunoe.apps.discussion.workflow.node import NODE_TYPES
from eunoe.apps.discussion.workflow.texts import BRACKETED, COUNT_KEYS, VALUES

DOCS = Path(__file__).parents[4] / "docs" / "discussions"
PAGE, NODES = ((DOCS / name).read_text(encoding="utf-8") for name in ("workflows.md", "nodes.md"))


@pytest.mark.parametrize("name", [*VALUES, *BRACKETED, *COUNT_KEYS])
def test_every_placeholder_is_listed(name: str) -> None:
    short = name.removeprefix("chat_user_prompt").removeprefix("templated_user_prompt")
    assert f"`{{{name}}}`" in PAGE or f"`{short}`" in PAGE or f"`[{name}]`" in PAGE or f"`{name}`" in PAGE


def test_every_node_type_is_listed_with_its_keys() -> None:
    own = [each for each in NODE_TYPES.values() if each.function.__module__.endswith("workflow.nodes")]
    pages = f"{PAGE}\n{NODES}".replace("\\*", "*")
    rows = {
        each.name: line for each in own for line in reversed(pages.splitlines()) if line.startswith(f"| `{each.name}` ")
    }
    for each in own:
        assert [key for key in each.required if f"`{key}`*" not in rows[each.name]] == []
