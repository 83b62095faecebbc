"""What each node of a run did: its inputs, its output, its time and its tokens."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class NodeTrace:
    """What one node did."""

    workflow: str
    """The names of its workflow and of those that called it: `main -> summary`."""
    number: int
    type: str
    title: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    """Its keys as they were rendered."""
    output: str = ""
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    models: list[str] = field(default_factory=list)
    """The language models that it asked."""
    notes: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def place(self) -> str:
        """The node in words, for errors and progress."""
        title = f' "{self.title}"' if self.title else ""
        return f"node {self.number}{title} ({self.type})"
