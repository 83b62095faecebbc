"""What forming and context work with; the engine's core is one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from eunoe.embed.store_embedder import Embedding
from eunoe.store.contract import Store

if TYPE_CHECKING:
    from eunoe.index.cache import Shelf
    from eunoe.llm.models import Models
    from eunoe.recall.reranking import Reader
    from eunoe.recall.static_context import Statics
    from eunoe.records.access import Uses


class Kit(Protocol):
    """Store, vectors, indexes and models of one memory."""

    @property
    def store(self) -> Store: ...

    @property
    def embedding(self) -> Embedding: ...

    @property
    def shelf(self) -> Shelf: ...

    @property
    def models(self) -> Models: ...

    @property
    def uses(self) -> Uses: ...

    @property
    def faults(self) -> Counter[str]: ...

    @property
    def statics(self) -> Statics: ...

    @property
    def reader(self) -> Reader: ...
