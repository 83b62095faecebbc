"""The suite that shows that a store keeps the contract.

Run it on a store by naming how it is opened:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def opener(self, tmp_path):
            return lambda: MyStore(tmp_path / "memory.db")

`opener` opens the same store every time it is called within one test. A store that is gone when it is closed sets
`is_lasting = False`; the tests that open it a second time are then left out.
"""

from collections.abc import Iterator
from typing import ClassVar

import pytest
from tests.store.conformance.items import ItemConformance
from tests.store.conformance.samples import Opener, insert_facts, new_fact
from tests.store.conformance.tables import TableConformance
from tests.store.conformance.transactions import TransactionConformance
from tests.support.steps import Steps

__all__ = ["Opener", "StoreConformance", "insert_facts", "new_fact"]


class StoreConformance(ItemConformance, TableConformance, TransactionConformance):
    """Every promise of the contract, as a test."""

    is_lasting: ClassVar[bool] = True

    @pytest.fixture
    def opener(self) -> Opener:
        raise NotImplementedError("give a fixture `opener` that returns a function which opens the store")

    @pytest.fixture
    def store(self, opener: Opener) -> Iterator[Steps]:
        store = Steps(opener())
        yield store
        store.close()

    @pytest.fixture
    def other(self, opener: Opener, store: Steps) -> Iterator[Steps]:
        """The same store, opened once more."""
        if not self.is_lasting:
            pytest.skip("this store is gone when it is closed")
        other = Steps(opener())
        yield other
        other.close()
